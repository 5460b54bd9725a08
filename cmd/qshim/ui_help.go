package main

const rootHelp = `qshim runs an agent CLI (claude, codex, gemini, or anything else) so faithfully
that nobody notices, sees when its provider says "no more for now", and makes
every session on the same account wait together and go on one after another.

  qshim claude                 instead of: claude
  qshim codex exec "fix it"    flags of qshim stand before the agent's name,
  qshim -- status              "--" makes any name an agent's
  alias claude='qshim claude'

While a session is suspended one row says why and until when:
  r  run anyway      q, then y  quit      Ctrl-C twice  quit

Each flag is also an environment variable (QSHIM_STATE_DIR, …) and a key in
~/.config/qshim/config.toml. QSHIM=off runs the agent without qshim.`
