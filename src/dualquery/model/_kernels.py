# mypy: ignore-errors
# Compiled code has numba's types, not Python's; the twins in the tests check it.
"""Compiled loops of the mixture model. Each has a plain NumPy twin in the tests.

`rows[term, k]` is the probability of a term under component k; loops over components are
contiguous and free of branches, so that they vectorise. Queries are grouped by their prefix, all
terms but the last: the product over a prefix is shared by its group.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dualquery.base.compile import njit

_compiled = njit(nogil=True, cache=True, fastmath=True, error_model="numpy")

LIMIT = np.float32(80.0)
"""Exponents are kept within ±80, inside the range of single precision; see `round_slopes`."""


@intrinsic
def _floor(typing_context, x):
    def code(context, builder, signature, arguments):
        function = builder.module.declare_intrinsic("llvm.floor", [ir.FloatType()])
        return builder.call(function, [arguments[0]])

    return types.float32(types.float32), code


@intrinsic
def _power_of_two(typing_context, n):
    """2ⁿ for a whole n in [−126, 127], by writing the exponent bits."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(32)
        exponent = builder.add(builder.fptosi(arguments[0], word), ir.Constant(word, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(word, 23)), ir.FloatType())

    return types.float32(types.float32), code


@intrinsic
def _bits_of(typing_context, x):
    """The bits of a number in single precision as a whole number."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), code


@intrinsic
def _of_bits(typing_context, bits):
    """The number in single precision that has these bits."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), code


@njit(inline="always")
def fast_exp(x):
    """exp in single precision, relative error below 3e-7 on ±87, in a form that vectorises."""
    n = _floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    r = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    return (p * r * r + r + np.float32(1.0)) * _power_of_two(n)


@_compiled
def forward(rows, weights, group_start, prefix_start, prefix, last, out, first, stop):
    """out[i] = Σ_k weights[k]·Π rows[term, k] over the terms of query i, for groups [first, stop).

    Group g holds the queries group_start[g]:group_start[g+1], which share the terms
    prefix[prefix_start[g]:prefix_start[g+1]] and differ in last[i].
    """
    components = rows.shape[1]
    shared = np.empty(components, dtype=rows.dtype)
    for g in range(first, stop):
        for k in range(components):
            shared[k] = weights[k]
        for place in range(prefix_start[g], prefix_start[g + 1]):
            row = rows[prefix[place]]
            for k in range(components):
                shared[k] *= row[k]
        for i in range(group_start[g], group_start[g + 1]):
            row = rows[last[i]]
            total = rows.dtype.type(0.0)
            for k in range(components):
                total += shared[k] * row[k]
            out[i] = total


@_compiled
def backward(
    rows,
    weights,
    group_start,
    prefix_start,
    prefix,
    last,
    slope,
    row_slope,
    weight_slope,
    first,
    stop,
):
    """Add to the slopes the gradient of Σ_i slope[i]·answer[i] over the groups [first, stop)."""
    components = rows.shape[1]
    shared = np.empty(components, dtype=rows.dtype)
    pulled = np.empty(components, dtype=rows.dtype)
    others = np.empty(components, dtype=rows.dtype)
    for g in range(first, stop):
        begin, end = prefix_start[g], prefix_start[g + 1]
        for k in range(components):
            shared[k] = weights[k]
            pulled[k] = 0.0
        for place in range(begin, end):
            row = rows[prefix[place]]
            for k in range(components):
                shared[k] *= row[k]
        for i in range(group_start[g], group_start[g + 1]):
            row, target, pull = rows[last[i]], row_slope[last[i]], slope[i]
            for k in range(components):
                pulled[k] += pull * row[k]
                target[k] += pull * shared[k]
        for k in range(components):
            others[k] = pulled[k]
        for place in range(begin, end):
            row = rows[prefix[place]]
            for k in range(components):
                others[k] *= row[k]
        for k in range(components):
            weight_slope[k] += others[k]
        for place in range(begin, end):
            for k in range(components):
                others[k] = pulled[k] * weights[k]
            for other in range(begin, end):
                if other != place:
                    row = rows[prefix[other]]
                    for k in range(components):
                        others[k] *= row[k]
            target = row_slope[prefix[place]]
            for k in range(components):
                target[k] += others[k]


@_compiled
def largest_distance(a, b):
    """max |a − b|.

    Numbers that are not negative are in the order of their bits, and the maximum of whole numbers
    is taken in vectors; that of floating-point numbers is not.
    """
    most = np.int32(0)
    for q in range(len(a)):
        distance = _bits_of(abs(np.float32(a[q] - b[q])))
        if distance > most:
            most = distance
    return _of_bits(most)


@_compiled
def round_slopes(answers, against, prior, temperatures, samples, chosen, slope, difference):
    """Subtract from `slope` the expected part of the likelihood's gradient of the chosen rounds.

    Round t contributes −s_t·log Z_t with Z_t = Σ_q w_q·2cosh(β_t(a_q − a_q^t)), w being the prior
    weights; its derivative by a_q is −s_t·β_t·(p⁺ − p⁻). Returns Σ_t s_t·log Z_t. `difference`
    is scratch space.
    """
    total = 0.0
    for place in range(len(chosen)):
        t = chosen[place]
        beta = temperatures[t]
        # Exponents beyond the range of single precision are moved into it, all by the same shift.
        shift = max(beta * largest_distance(answers, against[t]) - LIMIT, np.float32(0.0))
        z = 0.0
        for begin in range(0, len(answers), 4096):
            end = min(begin + 4096, len(answers))
            part = np.float32(0.0)
            now, then, d = answers[begin:end], against[t, begin:end], difference[begin:end]
            weight = prior[begin:end]
            if shift > 0:
                for q in range(len(now)):
                    x = beta * (now[q] - then[q])
                    up = fast_exp(max(x - shift, -LIMIT))
                    down = fast_exp(max(-x - shift, -LIMIT))
                    part += weight[q] * (up + down)
                    d[q] = weight[q] * (up - down)
            else:
                for q in range(len(now)):
                    x = min(max(beta * (now[q] - then[q]), -LIMIT), LIMIT)
                    up = fast_exp(x)
                    down = np.float32(1.0) / up
                    part += weight[q] * (up + down)
                    d[q] = weight[q] * (up - down)
            z += part
        scale = np.float32(samples[t] * beta / z)
        for q in range(len(answers)):
            slope[q] -= scale * difference[q]
        total += samples[t] * (np.log(z) + shift)
    return total


@_compiled
def inner(a, b):
    """Σ a·b, summed in double precision; BLAS would want both arrays copied to doubles."""
    total = 0.0
    for i in range(len(a)):
        total += np.float64(a[i]) * np.float64(b[i])
    return total


@_compiled
def softmax(logits, start, tables):
    """tables[code, k] = the softmax of logits over the codes of one attribute."""
    components = logits.shape[1]
    top = np.empty(components, dtype=np.float32)
    total = np.empty(components, dtype=np.float32)
    for a in range(len(start) - 1):
        for k in range(components):
            top[k] = logits[start[a], k]
            total[k] = 0.0
        for code in range(start[a] + 1, start[a + 1]):
            for k in range(components):
                top[k] = max(top[k], logits[code, k])
        for code in range(start[a], start[a + 1]):
            for k in range(components):
                e = fast_exp(max(logits[code, k] - top[k], -LIMIT))
                tables[code, k] = e
                total[k] += e
        for code in range(start[a], start[a + 1]):
            for k in range(components):
                tables[code, k] /= total[k]


@_compiled
def softmax_slopes(tables, start, table_slope, logit_slope):
    """The gradient by logits from the gradient by probabilities."""
    components = tables.shape[1]
    mean = np.empty(components, dtype=np.float32)
    for a in range(len(start) - 1):
        for k in range(components):
            mean[k] = 0.0
        for code in range(start[a], start[a + 1]):
            for k in range(components):
                mean[k] += tables[code, k] * table_slope[code, k]
        for code in range(start[a], start[a + 1]):
            for k in range(components):
                logit_slope[code, k] = tables[code, k] * (table_slope[code, k] - mean[k])


@_compiled
def shrink(logits, weights, strength, logit_slope):
    """Add the gradient of −strength/2·Σ_k π_k (z_k − z̄)², z a row of logits, z̄ = Σ_k π_k z_k.

    Every row has a strength of its own.
    """
    for code in range(len(logits)):
        common = np.float32(0.0)
        for k in range(len(weights)):
            common += weights[k] * logits[code, k]
        for k in range(len(weights)):
            logit_slope[code, k] -= strength[code] * weights[k] * (logits[code, k] - common)


@_compiled
def fill_rows(tables, start, members, rows):
    """rows[2l] = the probability of literal l, rows[2l+1] that of its negation."""
    components = tables.shape[1]
    for l in range(len(start) - 1):
        row, negated = rows[2 * l], rows[2 * l + 1]
        for k in range(components):
            row[k] = 0.0
        for place in range(start[l], start[l + 1]):
            table = tables[members[place]]
            for k in range(components):
                row[k] += table[k]
        for k in range(components):
            negated[k] = rows.dtype.type(1.0) - row[k]


@_compiled
def row_slopes_to_tables(row_slope, start, members, table_slope):
    """Add the gradient by literal rows to the gradient by the probabilities they sum up."""
    components = row_slope.shape[1]
    for l in range(len(start) - 1):
        row, negated = row_slope[2 * l], row_slope[2 * l + 1]
        for place in range(start[l], start[l + 1]):
            target = table_slope[members[place]]
            for k in range(components):
                target[k] += row[k] - negated[k]


@_compiled
def adam(parameters, slope, mean, square, rate, decay_mean, decay_square, fix_mean, fix_square):
    """One step of Adam, uphill; the running means are corrected by the given factors."""
    one = np.float32(1.0)
    for i in range(len(parameters)):
        mean[i] = decay_mean * mean[i] + (one - decay_mean) * slope[i]
        square[i] = decay_square * square[i] + (one - decay_square) * slope[i] * slope[i]
        parameters[i] += (
            rate * (mean[i] * fix_mean) / (np.sqrt(square[i] * fix_square) + np.float32(1e-8))
        )
