#!/bin/sh
# Makes orders.hindsight and captured.hindsight, as root: HINDSIGHT=PATH orders.sh FOLDER
#
# The program lies in /home/ada/orders, and has a linker and a libc of its own in /usr/lib/orders, which are removed before
# anything is packed: so that on no machine there is a file of theirs, and every answer is the same everywhere. The headers of
# the system are hidden from packing because they are large, and the environment, which is part of the program's memory, is empty.
set -e
if [ -z "$ADA" ]; then
  exec env -i ADA=1 CACHE="${XDG_CACHE_HOME:-$HOME/.cache}" HINDSIGHT="$HINDSIGHT" PATH=/usr/bin:/bin "$0" "$@"
fi
here=$(cd "$(dirname "$0")" && pwd)
into=$(cd "$1" && pwd)
home=/home/ada/orders
libs=/usr/lib/orders
hindsight=$HINDSIGHT cache=$CACHE
unset CACHE HINDSIGHT PWD OLDPWD
trap 'rm -rf /home/ada "$libs"' EXIT
mkdir -p "$home" "$libs" /home/ada/run
ln -s "$cache" /home/ada/.cache
chmod 700 /home/ada/run
export HOME=/home/ada XDG_RUNTIME_DIR=/home/ada/run
cp /lib/x86_64-linux-gnu/libc.so.6 /lib64/ld-linux-x86-64.so.2 "$libs"
cp "$here/orders.c" "$home"
cd "$home"
unset OLDPWD
gcc -g -O0 -o orders "$home/orders.c" -Wl,--dynamic-linker="$libs/ld-linux-x86-64.so.2" -Wl,-rpath,"$libs"
"$hindsight" repl -x rounded ./orders --script "$here/orders.session"
"$hindsight" record -o captured --regs --stack 256 --strings --watch sold -x rounded ./orders || [ $? = 3 ]
rm -r "$libs"
for name in orders captured; do
  unshare -m sh -ec 'mount -t tmpfs none /usr/include; mount -t tmpfs none /usr/lib/gcc; exec "$0" pack "$1"' "$hindsight" $name || [ $? = 1 ]
  rmdir $name.hindsight/log 2>/dev/null || true
  cp -r $name.hindsight "$into"
done
