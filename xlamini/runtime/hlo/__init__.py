"""Analysis of HLO text, the language of XLA's compiler: collectives, trip counts, cost estimates."""
