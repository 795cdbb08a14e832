"""Forty commands that no one should run, each as a script for ``sh``, and a word of how its trial ends.

``PORT`` is one that someone outside listens at, ``OUT`` a folder outside, ``ABSTRACT`` a socket outside.
"""

from typing import NamedTuple

_PERL = "perl -MSocket -e"


class Hostile(NamedTuple):
    name: str
    script: str
    ends: str = ""  # a part of why it can't be applied; empty: its end is an ordinary one


COMMANDS = (
    Hostile("hangs", "sleep 1000", "ended after"),
    Hostile("spins", "while :; do :; done", "ended after"),
    Hostile("ignores signals", "trap '' TERM INT HUP; while :; do sleep 1; done", "ended after"),
    Hostile("leaves a daemon", "setsid sh -c 'sleep 1000' >/dev/null 2>&1 & exit 0"),
    Hostile("leaves a double fork", "(sh -c 'nohup sleep 1000 & exit 0' &) ; exit 0"),
    Hostile("forks without end", "f() { f | f & }; f; sleep 1000", ""),
    Hostile("forks without end in perl", "perl -e 'while(1){fork}'", "ended"),
    Hostile(
        "fills the disk",
        "while :; do cat /dev/zero >> big; head -c 9000000 /dev/zero > f$$.$((n+=1)); done",
        "MB",
    ),
    Hostile("fills one file", "cat /dev/zero > big; exit 0", "MB"),
    Hostile("fills memory files", "while :; do head -c 9000000 /dev/zero > /tmp/$((n+=1)) || exit 0; done"),
    Hostile(
        "fills shared memory", "while :; do head -c 9000000 /dev/zero > /dev/shm/$((n+=1)) || exit 0; done"
    ),
    Hostile("fills its home", "while :; do head -c 9000000 /dev/zero > $HOME/$((n+=1)) || exit 0; done"),
    Hostile("makes ten million files", "perl -e 'for(1..10000000){open(F,\">f$_\");close F}'", "files"),
    Hostile(
        "makes ten million files in memory",
        "perl -e 'for(1..10000000){open(F,\">/tmp/$_\");close F}'",
        "files",
    ),
    Hostile("makes ten million folders", "perl -e 'for(1..10000000){mkdir \"d$_\"}'", "files"),
    Hostile("nests folders", 'perl -e \'while($n++<100000){mkdir "d";chdir "d"}\'', "it made"),
    Hostile("takes all memory", "perl -e '$x .= \"x\" x 10000000 while 1'"),
    Hostile(
        "takes all memory in many processes",
        "for n in 1 2 3 4 5 6 7 8; do perl -e '$x=\"x\" x 60000000; sleep 1000' & done; sleep 1000",
        "ended",
    ),
    Hostile("opens files without end", "perl -e 'while(open(my $f,\"<a.txt\")){push @f,$f}'"),
    Hostile("prints without end", "yes", "said more"),
    Hostile("prints binary", "head -c 100000 /dev/urandom"),
    Hostile("prints control characters", "printf '\\033[2J\\033]0;x\\007\\000\\377'"),
    Hostile(
        "calls out by TCP",
        f"{_PERL} 'socket(S,2,1,6);connect(S,sockaddr_in(PORT,inet_aton(\"127.0.0.1\")))||die'",
    ),
    Hostile(
        "calls out by UDP",
        f'{_PERL} \'socket(S,2,2,17);send(S,"x",0,sockaddr_in(PORT,inet_aton("127.0.0.1")))||die\'',
    ),
    Hostile(
        "calls out by a named socket", f"{_PERL} 'socket(S,1,1,0);connect(S,sockaddr_un(\"OUT/sock\"))||die'"
    ),
    Hostile(
        "calls out by an abstract socket",
        f"{_PERL} 'socket(S,1,1,0);connect(S,sockaddr_un(\"\\0ABSTRACT\"))||die'",
    ),
    Hostile("asks for a name", "getent hosts example.com; curl -m 2 http://example.com; exit 0"),
    Hostile("writes outside", "echo x > OUT/new; echo x >> OUT/there; rm -rf OUT; exit 0"),
    Hostile("writes to the system", "touch /usr/bin/x /etc/x /x /proc/sys/kernel/x; exit 0"),
    Hostile("reads outside", "cat OUT/there /etc/shadow /etc/passwd /root/* /home/*/*; exit 0"),
    Hostile("follows a link out", "ln -s OUT/there l; echo x >> l; cat l; exit 0", "leads out"),
    Hostile("links to what is above", "mkdir -p d && ln -s ../../x d/l", "leads out"),
    Hostile("puts a link in the place of a folder", "rm -rf b; ln -s / b; echo x > b/x; exit 0", "leads out"),
    Hostile("makes a pipe", "mkfifo p", "pipe"),
    Hostile("makes a device", "mknod d c 1 3; exit 0"),
    Hostile("runs as another", "cp /bin/sh s && chmod 4755 s", "another user"),
    Hostile("gives files away", "chown 0:0 a.txt || chown 1 a.txt; exit 0"),
    Hostile("takes all modes away", "chmod 000 a.txt b; chmod 000 ."),
    Hostile("leaves its namespace", "unshare -Urm true; mount -t tmpfs x /tmp; nsenter -t 1 -a true; exit 0"),
    Hostile("kills everyone", "kill -9 -1; exit 0", ""),
)
