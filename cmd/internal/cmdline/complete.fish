# Completion of qshim for fish 3.0 and later.
function __qshim_complete
    set -l words (commandline -opc)
    set -l at (string trim --left --chars='"\'' -- (commandline -ct))
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l out (command $program __complete $words[2..-1] "$at" 2>/dev/null)
    or return
    set -l files $out[-1]
    set -e out[-1]
    if test "$files" = :8
        __fish_complete_suffix "$at" .$out[1]
    else if set -q out[1]
        printf '%s\n' $out
    else if test "$files" = :0
        __fish_complete_path "$at"
    end
end
complete -c qshim -e
complete -c qshim -f -a '(__qshim_complete)'
