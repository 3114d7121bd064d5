"""The keys that sign certificates, and what they sign."""

from __future__ import annotations

import json

import pytest
import sqlalchemy

from db.errors import NotFound
from db.views import CertificateView
from loopwright.codegen import signatures
from tests.contract.db.conftest import World
from tests.contract.db.test_db_rechecks import recheck_job, result


def certificate(world: World, trial_id: str) -> CertificateView:
    found = world.db.records.get(trial_id)
    assert found.certificate is not None
    return found.certificate


def signs(world: World, view: CertificateView) -> str:
    """Return the id of the published key that signed a certificate."""
    keys = {key.id: key for key in world.db.signing_keys.published()}
    key = keys[view.signed.key_id]
    assert signatures.is_signed(view.signed.document, view.signed.signature, key.public_key)
    assert signatures.key_id(key.public_key) == key.id
    return key.id


def test_a_certificate_is_signed_with_what_it_says(world: World) -> None:
    trials, certificate_id = world.measured(0.25)
    view = certificate(world, trials[1].id)
    document = json.loads(view.signed.document)
    assert signs(world, view)
    assert document["id"] == certificate_id
    assert document["workload_hash"] == "w0"
    assert document["trace_sha256"] == signatures.trace_digest([0])
    assert document["best_run_secs"] == [0.25] * 3
    assert document["machine"] == {"model": "cpu-1", "features": ["avx2", "fma"], "cores": 8, "threads": 8}
    assert document["tvm_version"] == "0.27"
    assert signatures.canonical(document) == view.signed.document


def test_the_first_start_makes_a_key_once(world: World) -> None:
    world.db.signing_keys.ensure()
    world.db.signing_keys.ensure()
    [key] = world.db.signing_keys.published()
    assert key.retired_at is None
    trials, _ = world.measured(0.25)
    assert signs(world, certificate(world, trials[1].id)) == key.id


def test_after_a_rotation_a_new_key_signs_and_the_old_one_stays_published(world: World) -> None:
    before, _ = world.measured(0.25)
    old = signs(world, certificate(world, before[1].id))
    world.clock.forward(1)
    new = world.db.signing_keys.rotate()
    world.clock.forward(1)
    after, _ = world.measured(0.5, hash="w1")
    assert signs(world, certificate(world, after[1].id)) == new.id != old
    assert signs(world, certificate(world, before[1].id)) == old
    assert [(key.id, key.retired_at) for key in world.db.signing_keys.published()] == [
        (new.id, None),
        (old, new.created_at),
    ]


@pytest.mark.parametrize("is_retired", [False, True])
def test_what_a_revoked_key_signed_is_signed_again(world: World, is_retired: bool) -> None:
    trials, certificate_id = world.measured(0.25)
    others, _ = world.measured(0.5, hash="w1")
    claimed = recheck_job(world, certificate_id)
    world.db.rechecks.store(claimed.job.id, claimed.lease_token, certificate_id, result("holds"), holds=True)
    before = certificate(world, trials[1].id)
    stolen = signs(world, before)
    if is_retired:
        world.clock.forward(1)
        world.db.signing_keys.rotate()
    late, _ = world.measured(0.5, hash="w2")
    signer = signs(world, certificate(world, late[1].id))
    world.clock.forward(1)
    done = world.db.signing_keys.revoke(stolen)
    assert (done.key.id, done.key.revoked_at) == (stolen, world.clock.time)
    assert (done.signed, done.left) == (4 if is_retired else 5, 0)
    assert (done.signer == signer) is is_retired
    after = certificate(world, trials[1].id)
    assert after.signed.document == before.signed.document
    assert after.verdict is not None
    assert {signs(world, certificate(world, each[1].id)) for each in (trials, others, late)} == {done.signer}
    assert after.verdict == world.db.rechecks.of_job(claimed.job.id)[0].signed
    assert after.verdict.key_id == done.signer
    revoked = {key.id: key.revoked_at for key in world.db.signing_keys.published()}
    assert revoked == {stolen: world.clock.time, done.signer: None}
    world.clock.forward(1)
    again = world.db.signing_keys.revoke(stolen)
    assert (again.key.revoked_at, again.signer, again.signed) == (done.key.revoked_at, done.signer, 0)
    newest, _ = world.measured(0.5, hash="w3")
    assert signs(world, certificate(world, newest[1].id)) == done.signer


def test_what_was_changed_is_not_signed_again(world: World) -> None:
    trials, _ = world.measured(0.25)
    others, _ = world.measured(0.5, hash="w1")
    stolen = signs(world, certificate(world, trials[1].id))
    with world.db._engine.begin() as connection:
        connection.execute(
            sqlalchemy.text(
                "UPDATE certificates SET document = replace(document, '0.25', '0.125') WHERE trial_id = :id"
            ),
            {"id": trials[1].id},
        )
    done = world.db.signing_keys.revoke(stolen)
    assert (done.signed, done.left) == (1, 1)
    assert certificate(world, trials[1].id).signed.key_id == stolen
    assert signs(world, certificate(world, others[1].id)) == done.signer


def test_a_key_that_is_not_there_cannot_be_revoked(world: World) -> None:
    world.db.signing_keys.ensure()
    with pytest.raises(NotFound):
        world.db.signing_keys.revoke("0" * 16)
    [key] = world.db.signing_keys.published()
    assert (key.retired_at, key.revoked_at) == (None, None)


def test_a_retired_key_cannot_sign_any_more(world: World) -> None:
    world.db.signing_keys.ensure()
    world.db.signing_keys.rotate()
    with world.db._engine.connect() as connection:
        rows = connection.execute(sqlalchemy.text("SELECT retired_at, private_key FROM signing_keys")).all()
    assert sorted((retired is None, private is None) for retired, private in rows) == [(False, True), (True, False)]
