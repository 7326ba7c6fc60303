"""cond and switch: their public functions, their primitive, its residuals and its batching as a select."""
