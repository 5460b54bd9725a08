#compdef qshim
# Completion of qshim for zsh.
_qshim() {
    local line word files
    local -a out offers
    # Quotes are taken off and nothing is evaluated: no command runs by a Tab.
    out=("${(@f)$("${${(Q)words[1]}/#\~\//$HOME/}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    files=${out[-1]#:}
    out[-1]=()
    if [[ $files == 8 ]]; then
        _files -g "*.$out[1]"
        return
    fi
    for line in $out; do
        word=${line%%$'\t'*}
        offers+=("${word//:/\\:}${${line#$word}/#$'\t'/:}")
    done
    if (( $#offers )); then
        _describe -t words qshim offers && return
    fi
    [[ $files == 0 ]] && _files
}
# As a file in fpath it is the function's first call; evaluated, a definition.
if [[ $funcstack[1] == _qshim ]]; then
    _qshim
elif (( $+functions[compdef] )); then
    compdef _qshim qshim
fi
