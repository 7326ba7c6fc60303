"""cond and switch: public functions, primitive, tracing of branches, residuals, and batching by a select."""
