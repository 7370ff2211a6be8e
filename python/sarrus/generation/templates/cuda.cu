@about@
/* One thread a state, whose numbers follow each other: f<<<(states + 127) / 128, 128>>>(states, arguments ..., results ..., status). */
@functions@
