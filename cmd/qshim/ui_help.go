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

const initHelp = `Print what a shell evaluates to know qshim: an alias for each agent in PATH
(claude='qshim claude') unless you have an alias or a function of that name, and
the completion of qshim's own words.

  bash  eval "$(qshim init bash)"     in ~/.bashrc
  zsh   eval "$(qshim init zsh)"      in ~/.zshrc, after compinit
  fish  qshim init fish | source      in ~/.config/fish/config.fish

An alias works where you type. For programs that start agents: qshim link.`

const logHelp = `Show what was found and decided, and why.

--unrecognised shows the turns that an agent itself calls failed while its rows
speak of a limit in words that no rule knows: a new version's, most likely.`
