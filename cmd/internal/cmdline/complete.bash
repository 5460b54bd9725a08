# Completion of qshim for bash 3.2 and later; it needs nothing else.
_qshim() {
    local line=${COMP_LINE:0:COMP_POINT} word blanks out files i width=0 about room
    local -a words offers
    words=() offers=() COMPREPLY=()
    # bash cuts words at the characters of COMP_WORDBREAKS too: what no blank
    # parts is one word. The last one ends at the cursor.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blanks=${line%%[![:space:]]*}
        line=${line#"$blanks"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$line
        line=${line#"$word"}
        if ((i == 0)) || [[ -n $blanks ]]; then
            words[${#words[@]}]=$word
        else
            words[${#words[@]} - 1]+=$word
        fi
    done
    word=${words[${#words[@]} - 1]}
    # readline replaces what stands behind the last of these only, an @ with it.
    local kept=${word%"${word##*[$COMP_WORDBREAKS]}"}
    kept=${kept%@}
    # Quotes are taken off and nothing is evaluated: no command runs by a Tab.
    kept=${kept//[\"\'\\]/} words=("${words[@]//[\"\'\\]/}")
    word=${words[${#words[@]} - 1]}
    [[ ${words[0]} != "~/"* ]] || words[0]=$HOME/${words[0]#"~/"}
    out=$("${words[0]}" __complete "${words[@]:1:${#words[@]}-2}" "$word" 2>/dev/null) || return
    files=${out##*:} out=${out%:*}
    while IFS= read -r line; do
        [[ -n $line ]] || continue
        offers[${#offers[@]}]=$line
        word=${line%%$'\t'*}
        ((${#word} <= width)) || width=${#word}
    done <<<"$out"
    word=${words[${#words[@]} - 1]}
    if [[ $files == 8 ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do
            COMPREPLY[${#COMPREPLY[@]}]=$line
        done < <(compgen -f -X "!*.${offers[0]}" -- "$word"; compgen -d -- "$word")
        return
    fi
    [[ $files == 0 ]] || compopt +o default +o bashdefault 2>/dev/null
    room=$((${COLUMNS:-80} - width - 5))
    for line in "${offers[@]+"${offers[@]}"}"; do
        word=${line%%$'\t'*} about=${line#"$word"} about=${about#$'\t'}
        # With several, bash shows a list; only a menu would insert what it says.
        if ((${#offers[@]} > 1 && COMP_TYPE != 37 && COMP_TYPE != 42 && room > 10)) && [[ -n $about ]]; then
            ((${#about} <= room)) || about=${about:0:room - 1}…
            printf -v word "%-${width}s  (%s)" "$word" "$about"
        fi
        COMPREPLY[${#COMPREPLY[@]}]=${word#"$kept"}
    done
}
complete -o default -o bashdefault -F _qshim qshim
