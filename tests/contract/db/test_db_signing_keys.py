"""The keys that sign certificates, and what they sign."""

from __future__ import annotations

import json

import sqlalchemy

from db.views import CertificateView
from loopwright.codegen import signatures
from tests.contract.db.conftest import World


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


def test_a_retired_key_cannot_sign_any_more(world: World) -> None:
    world.db.signing_keys.ensure()
    world.db.signing_keys.rotate()
    with world.db._engine.connect() as connection:
        rows = connection.execute(sqlalchemy.text("SELECT retired_at, private_key FROM signing_keys")).all()
    assert sorted((retired is None, private is None) for retired, private in rows) == [(False, True), (True, False)]
