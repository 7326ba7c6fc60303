"""Private: what `xlamini.inspect` is made of, from the table of equations to the page.

The package is not called `inspect`, because a package of that name would hide the function.
"""
