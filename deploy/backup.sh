#!/bin/sh
# backup.sh FROM TO: a copy of a folder of memories while everything runs. Needs sqlite3 and flock. See docs/deployment.md.
set -eu
umask 077
from=$1 to=$2
mkdir "$to" # fails if it is there: two backups in one folder would be neither
for name in recollect identities keys queue; do
    [ ! -e "$from/$name.db" ] || sqlite3 "$from/$name.db" ".backup '$to/$name.db'"
done
# whoever has it can sign tokens; after a restore another one is made
[ ! -e "$to/keys.db" ] || sqlite3 "$to/keys.db" 'PRAGMA secure_delete = ON; DELETE FROM memory_key_secret' >/dev/null
for lock in "$from"/*/.lock; do
    [ -e "$lock" ] || continue
    person=$(dirname "$lock")
    copy=$to/$(basename "$person")
    mkdir "$copy"
    # who holds the lock is the only writer: database and files are of one moment
    flock "$lock" sh -eu -c '
        [ ! -e "$1/memory.db" ] || sqlite3 "$1/memory.db" ".backup \"$2/memory.db\""
        [ ! -e "$1/MEMORY.md" ] || cp -p "$1/MEMORY.md" "$2/"
        [ ! -d "$1/memory" ] || cp -pR "$1/memory" "$2/"' sh "$person" "$copy"
done
