
_clap_complete_hindsight() {
    local IFS=$'\013'
    local _CLAP_COMPLETE_INDEX=${COMP_CWORD}
    local _CLAP_COMPLETE_COMP_TYPE=${COMP_TYPE}
    if compopt +o nospace 2> /dev/null; then
        local _CLAP_COMPLETE_SPACE=false
    else
        local _CLAP_COMPLETE_SPACE=true
    fi
    local words=("${COMP_WORDS[@]}")
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        words[COMP_CWORD]="$2"
    fi
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$_CLAP_COMPLETE_INDEX" \
        _CLAP_COMPLETE_COMP_TYPE="$_CLAP_COMPLETE_COMP_TYPE" \
        _CLAP_COMPLETE_SPACE="$_CLAP_COMPLETE_SPACE" \
        COMPLETE="bash" \
        "hindsight" -- "${words[@]}" \
    ) )
    if [[ $? != 0 ]]; then
        unset COMPREPLY
    elif [[ $_CLAP_COMPLETE_SPACE == false ]] && [[ "${COMPREPLY-}" =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clap_complete_hindsight hindsight
else
    complete -o nospace -o bashdefault -F _clap_complete_hindsight hindsight
fi


# Bash splits words at colons and equals signs, passes earlier words with their quotes, and inserts candidates as they are.
# _hindsight joins the words before it asks, and escapes the candidates.
_hindsight() {
    local -a words=()
    local i last word current before space joins= quoted=
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i > 1)) && [[ $joins || $word =~ ^[:=]+$ ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        joins=
        [[ $word =~ ^[:=]+$ ]] && joins=1
    done
    last=$((${#words[@]} - 1))
    for ((i = 0; i < last; i++)); do
        case ${words[i]} in
            \'*\' | \"*\") words[i]=${words[i]:1:${#words[i]}-2} ;;
            \~/*) words[i]=$HOME/${words[i]:2} ;;
            *) words[i]=${words[i]//\\/} ;;
        esac
    done
    current=${words[last]}
    case $current in
        [\'\"]*) quoted=1 current=${current:1} before= ;;
        *)
            # Bash replaces what follows the last colon or equals sign.
            word=${COMP_WORDS[COMP_CWORD]}
            [[ $joins ]] && word=
            before=${current%"$word"}
            before=${before//\\/}
            current=${current//\\/}
            ;;
    esac
    words[last]=$current
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$last
    _clap_complete_hindsight hindsight "$current" "${words[last-1]}"
    for i in "${!COMPREPLY[@]}"; do
        word=${COMPREPLY[i]#"$before"}
        current=${word% }
        # What clap_complete adds to a finished word in a bash that cannot.
        space=${word#"$current"}
        [[ $quoted || -z $current ]] || printf -v current %q "$current"
        COMPREPLY[i]=$current$space
    done
}
complete -o nospace -o bashdefault -o nosort -F _hindsight hindsight 2> /dev/null ||
    complete -o nospace -o bashdefault -F _hindsight hindsight
