"""The call that writes a compiled model to a folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Unpack

from loopwright.calls.models import ModelCalls
from loopwright.extras import require_tvm
from loopwright.jobs.targets import on_wire
from loopwright.model import ModelOptions, as_model


class PackageCalls(ModelCalls):
    """Compiled models as folders."""

    def package(
        self,
        model: Any,
        directory: str | Path,
        target: Any = "auto",
        params: dict[str, Any] | None = None,
        *,
        name: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> Path:
        """Write a model, as `compile` builds it for CPUs, to a folder that runs without Loopwright.

        The folder has the library with the weights, TVM's runtime (no compiler), loaders in Python and C++, a manifest
        (functions, digests, target, certificates, versions, licences), and programs and an example with which
        `loopwright.verify` repeats the checks on the machine that has the folder. `loopwright.load` runs the model. To
        write the folder, a C++ compiler is needed. Functions that missed are logged.

        Args:
            model: as for `submit`.
            directory: the folder to write. It must be empty or not exist.
            target: the target to build for, which is a CPU.
            params: values that are bound to ``main`` by name.
            name: name of the model in the manifest; by default that of the file or class.
            options: the options of a plain model, as they were submitted.

        Returns:
            The folder.

        Raises:
            ValueError: the model has no Relax function ``main``, or an input without a fixed shape.
            UnsupportedModel: the target is no CPU, or the model cannot be turned into a module.
            FileExistsError: the folder is not empty.
        """
        source = as_model(model, **options)
        require_tvm()
        from loopwright.comparing import writing
        from loopwright.packaging import package

        package.check_folder(Path(directory))
        with tempfile.TemporaryDirectory(prefix="loopwright-package-") as scratch:
            files, reference = writing.write(Path(scratch), source, on_wire(target), with_onnx=False)
            looked_up = self.look_up(files.model, target, params)
            if files.form != "pt2":
                files = writing.complete(files, looked_up, source)
            plain = source.model
            name = name or (Path(plain).stem if isinstance(plain, str | os.PathLike) else type(plain).__name__)
            report = package.write(Path(directory), looked_up, files, name=name, reference=reference)
        self._report(report)
        return Path(directory)
