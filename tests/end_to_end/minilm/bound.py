"""How far a right float32 answer of a softmax layer without masks may lie from the true one: the
formulas of tests/core/tolerance.h (Higham and Mary 2019), in float64, as arrays."""
import numpy as np

U2 = 2.0**-48


def linear_variance(items, weight, bias):
    """[N, outputs]: of weight x + bias."""
    squares = items**2 @ weight.T**2 + bias**2
    return U2 * (items.shape[1] + 1) * (squares + (items @ weight.T + bias) ** 2)


def by_head(rows, heads):
    """[N, H*d] -> [H, N, d]"""
    return rows.reshape(len(rows), heads, -1).transpose(1, 0, 2)


def softmax_ends(s, d, sign):
    """1 / (1 + sum over k != j of e^(s_k + sign d_k - s_j + sign d_j)), along the last axis."""
    shifted = s + sign * d
    top = shifted.max(-1, keepdims=True)
    shares = np.exp(shifted - top)
    others = np.maximum(shares.sum(-1, keepdims=True) - shares, 0)
    return 1 / (1 + others * np.exp(top - s + sign * d))


def bounds(items, parameters, truth, heads, scale):
    """Those of scores [H, N, N], weights [H, N, N] and values [N, d_out]. `parameters` maps "query",
    "key", "value" and "output" to (weight, bias); `truth` is what EncoderLayer.run gives."""
    n = len(items)
    variance = {part: by_head(linear_variance(items, *parameters[part]), heads)
                for part in ("query", "key", "value")}
    q, k, v = (by_head(truth[part], heads) for part in ("query", "key", "value"))
    s, p = truth["scores"], truth["weights"]
    dot = q @ k.transpose(0, 2, 1)
    dot_variance = U2 * (q.shape[2] + 2) * (q**2 @ (k**2).transpose(0, 2, 1) + dot**2)
    inherited = (variance["query"] @ (k**2).transpose(0, 2, 1)
                 + q**2 @ variance["key"].transpose(0, 2, 1))
    d = 8 * np.sqrt(scale**2 * (inherited + dot_variance) + 5 * U2 * s**2)

    rounding = (6 * np.sqrt(n) if n > 36 else n + 20) * np.sqrt(U2)
    distance = np.maximum(p - softmax_ends(s, d, 1), softmax_ends(s, d, -1) - p)
    e = distance + rounding * p + 2.0**-126

    y = by_head(truth["y"], heads)
    coherent = d.max(-1, keepdims=True) > 0.01
    from_weights = np.where(coherent, (e @ np.abs(v)) ** 2, e**2 @ v**2)
    var_y = from_weights + 64 * (p**2 @ variance["value"] + U2 * (n + 4) * (p**2 @ v**2 + y**2))
    var_y = var_y.transpose(1, 0, 2).reshape(n, -1)

    inherited = var_y @ parameters["output"][0].T ** 2
    values = np.sqrt(inherited
                     + 64 * U2 * (var_y.shape[1] + 1) * (inherited + truth["values"] ** 2))
    return d, e, values
