"""The differential oracle: one program, run on plain plum and on frozen functions, and compared.

- `compare`: what came out of a step, as plain data, and how two outcomes differ;
- `vocabulary`: the hints, values and method bodies that programs are made of;
- `steps`, `control`, `family`: a program is a list of steps, each small data that prints as a line of Python;
- `ways`: how a function is called from inside JAX (jit, vmap, grad, scan, custom rules);
- `world`: fresh dispatcher, classes and module, to which steps are applied;
- `library`: plum_freeze, and fakes that are wrong on purpose;
- `duel`: the same step in all worlds, compared, and the shortening of a program that differs;
- `choices`, `themes`: what hypothesis chooses from;
- `found`: programs that once differed;
- `mutations`: broken builds that must be caught;
- `machine`: the stateful hypothesis test;
- `speed`: what keeps XLA's compile time out of the run.
"""
