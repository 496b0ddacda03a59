"""The mixture of forests: which attributes are joined directly, and every table that follows.

A component draws an attribute without a parent from its own shares, and every other attribute given
its parent. What ties a child to its parent is one matrix that all components of a fit share;
components move its margins. Without edges this is a mixture of products, and with one component
it is a tree.
"""
