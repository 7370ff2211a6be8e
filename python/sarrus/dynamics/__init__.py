"""Functions of a state of mechanisms, with and without loops, their derivatives, and the reactions of all joints."""
