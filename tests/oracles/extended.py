"""Dense linear algebra in the precision of its arguments; NumPy's is limited to double."""

import numpy as np


def solve(A, b):
    """Return A^-1 b by Gaussian elimination with partial pivoting; real or complex, double or extended."""
    A, b = np.array(A), np.array(b)
    b = b.astype(np.result_type(A, b))
    for k in range(len(A)):
        pivot = k + np.argmax(np.abs(A[k:, k]))
        A[[k, pivot]], b[[k, pivot]] = A[[pivot, k]], b[[pivot, k]]
        share = A[k + 1 :, k] / A[k, k]
        A[k + 1 :] -= np.multiply.outer(share, A[k])
        b[k + 1 :] -= np.multiply.outer(share, b[k])
    for k in reversed(range(len(A))):
        b[k] = (b[k] - A[k, k + 1 :] @ b[k + 1 :]) / A[k, k]
    return b


def orthonormal(V):
    """Return the matrix with orthonormal columns nearest to one that nearly has them: two steps, each squares the error."""
    for _ in range(2):
        V = V @ (3 * np.eye(V.shape[1]) - V.T @ V) / 2
    return V


def singular_vectors(A):
    """B (m, n), s (n,) descending and V (n, n) orthogonal with A V = B, B^T B = diag(s^2).

    NumPy's in double; beyond it, corrected by one-sided Jacobi rotations until the columns of B are orthogonal
    (Hestenes; Golub and Van Loan, Matrix Computations, 8.6.3), which also finds the small ones to all their digits.
    """
    m, n = A.shape
    U, s, Vt = np.linalg.svd(A.astype(float))
    V = Vt.T
    if A.dtype == float:
        B, many = np.zeros((m, n)), len(s)
        B[:, :many] = U[:, :many] * s
        return B, np.concatenate([s, np.zeros(n - many)]), V
    V = orthonormal(V.astype(A.dtype))
    B = A @ V
    eps = np.finfo(A.dtype).eps
    negligible = (eps * np.abs(A).max(initial=0)) ** 2
    for _ in range(8):
        G = B.T @ B
        d = np.sqrt(np.diag(G))
        pairs = np.argwhere(np.triu(np.abs(G) > 8 * eps * np.outer(d, d) + negligible, 1))
        if not len(pairs):
            break
        for i, j in pairs:
            x, y = B[:, i], B[:, j]
            xy = x @ y
            if xy == 0:
                continue
            zeta = (y @ y - x @ x) / (2 * xy)
            t = (1 if zeta >= 0 else -1) / (abs(zeta) + np.sqrt(1 + zeta * zeta))
            c = 1 / np.sqrt(1 + t * t)
            turn = np.array([[c, c * t], [-c * t, c]])
            B[:, [i, j]], V[:, [i, j]] = B[:, [i, j]] @ turn, V[:, [i, j]] @ turn
    s = np.sqrt(np.sum(B * B, axis=0))
    order = np.argsort(-s)
    return B[:, order], s[order], V[:, order]
