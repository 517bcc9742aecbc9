"""ATen ops that cannot be said in QNN, each with the reason."""

from __future__ import annotations

from typing import Any, NoReturn

from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation

_RANDOM = "a QNN graph always gives the same result for the same input; it has no random numbers"
_COMPLEX = "complex numbers have no QNN equivalent"
_SOLVER = "decompositions and solvers of linear algebra have no QNN equivalent"
_REASONS = {
    _RANDOM: (
        "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli",
        "normal", "multinomial", "uniform",
        "exponential", "geometric", "poisson", "cauchy", "log_normal", "random",
        "normal_functional", "binomial", "_standard_gamma", "_sample_dirichlet",
    ),
    _COMPLEX: (
        "complex", "polar", "view_as_complex", "view_as_real", "_fft_r2c", "_fft_c2c", "_fft_c2r",
        "fft_fft", "fft_rfft", "istft", "imag",
    ),
    _SOLVER: (
        "linalg_eig", "linalg_eigvals", "linalg_eigh", "_linalg_eigh", "_linalg_svd", "linalg_qr",
        "linalg_lstsq", "linalg_ldl_factor_ex", "linalg_lu_factor_ex", "geqrf", "ormqr",
        "linalg_householder_product", "_linalg_eigvals", "linalg_matrix_exp",
    ),
}  # fmt: skip


def _refusal(reason: str) -> Any:
    def refuse(t: TorchTranslation, **arguments: Any) -> NoReturn:
        t.refuse(reason)

    return refuse


for _reason, _names in _REASONS.items():
    translates(*_names)(_refusal(_reason))
