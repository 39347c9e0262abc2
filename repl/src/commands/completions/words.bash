
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
