"""Lists of programs, with their words and flags, that lose something, send something, or run code.

`find_harm` (``harm.py``) looks commands up here. The sets of harmful programs come first, then
`HARMLESS_SUBCOMMANDS`. Last is `find_loss`, which judges the words after any other program.

A match can only raise a command's risk. A command without a match still counts as writing, unless it is known
to only read.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

LOSING_PROGRAMS = frozenset({  # they can lose something whatever their arguments
    # files and disks
    "rm", "rmdir", "unlink", "shred", "srm", "wipe", "dd", "mke2fs", "wipefs", "fdisk", "sfdisk", "gdisk",
    "sgdisk", "cfdisk", "cgdisk", "parted", "mkswap", "swapoff", "truncate", "fallocate", "blkdiscard",
    "badblocks", "hdparm", "nvme", "resize2fs", "tune2fs", "fsck", "e2fsck", "xfs_repair", "newfs",
    "mdadm", "dmsetup", "losetup", "cryptsetup", "lvremove", "lvreduce", "lvresize", "vgremove",
    "vgreduce", "pvremove", "zfs", "zpool", "btrfs", "chattr", "mount", "umount", "mogrify", "tmpreaper",
    "tmpwatch", "logrotate", "rsnapshot", "bleachbit", "trash-empty", "trash-rm", "efibootmgr",
    "grub-install", "flashrom", "pvcreate", "xfs_growfs", "dc3dd", "ddrescue", "nwipe", "scrub", "dcfldd",
    "brctl", "unison",
    # processes, services, the machine
    "kill", "killall", "killall5", "pkill", "skill", "slay", "xkill", "fuser", "shutdown", "reboot", "halt",
    "poweroff", "init", "telinit", "systemctl", "service", "rc-service", "update-rc.d", "chkconfig",
    "launchctl", "crontab", "at", "atrm", "batch", "sysctl", "modprobe", "insmod", "rmmod", "hwclock",
    "iptables", "ip6tables", "ebtables", "arptables", "nft", "ipset", "ufw", "firewall-cmd", "route", "ip",
    "ifconfig", "tc", "wg", "wg-quick", "netplan", "setenforce", "dpkg-reconfigure", "nix-collect-garbage",
    # accounts and rights
    "useradd", "userdel", "usermod", "adduser", "deluser", "groupadd", "groupdel", "groupmod", "addgroup",
    "delgroup", "gpasswd", "passwd", "chpasswd", "chage", "chsh", "chfn", "newusers", "visudo", "vipw",
    "vigr", "setfacl", "setcap", "smbpasswd", "pdbedit", "ldapdelete", "ldapmodify", "ldapmodrdn",
    "kadmin", "history",
    # databases
    "dropdb", "dropuser", "pg_dropcluster", "pg_resetwal", "pg_restore", "pg_rewind", "mongorestore",
    "mysqlimport", "memcflush", "kafka-delete-records",
})  # fmt: skip
SENDING_PROGRAMS = frozenset({  # they send something to people
    "mail", "mailx", "nail", "s-nail", "bsd-mailx", "sendmail", "sendemail", "exim", "exim4", "msmtp",
    "mutt", "neomutt", "swaks", "mhmail", "wall", "write", "telegram-send", "telegram-cli", "signal-cli",
    "slackcat", "slack", "matrix-commander", "sendxmpp", "xmpp-send", "twilio", "ntfy", "apprise", "toot",
    "gammu", "lp", "lpr", "mosquitto_pub", "amqp-publish", "postsuper", "websocat", "wscat", "croc",
    "wormhole", "sendgrid", "mailgun", "heirloom-mailx", "irc",
})  # fmt: skip
CODE_PROGRAMS = frozenset({
    # shells, and words of a shell that change what later words mean
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "eval", "exec",
    "source", ".", "command", "builtin", "coproc", "trap", "alias", "unalias", "enable", "export",
    "declare", "typeset", "local", "readonly", "set", "unset", "shopt", "hash", "bind", "mapfile",
    "readarray", "read", "let", "time", "function", "getopts", "ulimit", "umask", "complete", "compgen",
    "fc",
    # programs that run another one
    "env", "nice", "ionice", "nohup", "timeout", "stdbuf", "setsid", "setarch", "unshare", "nsenter",
    "chroot", "chrt", "taskset", "strace", "ltrace", "gdb", "lldb", "perf", "watch", "xargs", "parallel",
    "script", "expect", "unbuffer", "busybox", "toybox", "flock", "entr", "tmux", "screen",
    "dbus-run-session", "systemd-run", "runuser", "sudo", "su", "doas", "pkexec", "run-parts",
    "start-stop-daemon", "faketime", "proot", "fakeroot", "capsh", "ssh", "sshpass", "mosh", "rsh",
    "telnet", "nc", "ncat", "netcat", "socat", "rsync", "scp", "sftp", "ftp", "vi", "vim", "nvim", "view",
    "ex", "ed", "emacs", "nano", "less", "more", "man", "ld.so", "ld-linux.so", "psql", "mysql",
    "mariadb", "sqlite3", "sqlplus", "mongo", "mongosh", "redis-cli", "clickhouse-client", "duckdb",
})  # fmt: skip
LANGUAGES = frozenset({  # programs that run code from a file or from their input
    "python", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "wish",
    "awk", "gawk", "mawk", "nawk", "sed", "gsed", "osascript", "java", "jshell", "groovy", "scala",
    "rscript", "r", "julia", "guile", "ghci", "erl", "elixir", "iex", "bc", "dc", "m4", "pip", "pip3",
    "pypy", "irb", "raku", "npx", "uvx", "pipx", "bunx", "swift",
})  # fmt: skip
REMOTE_CODE_PROGRAMS = frozenset({
    "ansible", "ansible-playbook", "ansible-console", "salt", "salt-call", "salt-ssh", "puppet",
    "chef-client", "fab", "pyinfra", "cap", "pssh", "parallel-ssh", "clush", "dsh", "mussh", "sqlcmd",
    "cqlsh", "isql", "usql", "pgcli", "mycli", "mssql-cli", "litecli", "cypher-shell", "arangosh",
    "systemd-nspawn", "zookeeper-shell", "cockroach", "pdsh",
})  # fmt: skip
"""Programs that run code on other machines, or the language of a database."""

_DOCKER_SUBCOMMANDS = {
    "ps",
    "images",
    "version",
    "info",
    "logs",
    "inspect",
    "start",
    "restart",
    "pull",
    "top",
}
_KUBECTL_SUBCOMMANDS = {
    "get", "describe", "logs", "version", "explain", "top", "create", "label", "annotate",
}  # fmt: skip
_TERRAFORM_SUBCOMMANDS = {"plan", "validate", "fmt", "version", "show", "output", "init", "graph"}
HARMLESS_SUBCOMMANDS = {
    "docker": _DOCKER_SUBCOMMANDS,
    "podman": _DOCKER_SUBCOMMANDS,
    "nerdctl": _DOCKER_SUBCOMMANDS,
    "kubectl": _KUBECTL_SUBCOMMANDS,
    "oc": _KUBECTL_SUBCOMMANDS,
    "terraform": _TERRAFORM_SUBCOMMANDS,
    "tofu": _TERRAFORM_SUBCOMMANDS,
    "terragrunt": _TERRAFORM_SUBCOMMANDS,
    "helm": {"list", "ls", "status", "get", "version", "history", "template", "lint"},
    "pulumi": {"preview", "whoami", "version", "about", "logs"},
    "cdk": {"diff", "ls", "list", "synth", "synthesize", "doctor", "version"},
    "flyway": {"info", "validate", "version", "migrate"},
    "helmfile": {"diff", "list", "template", "lint", "build", "status"},
}
"""The subcommands that lose nothing, by program; any other subcommand may lose something."""

_PACKAGE_MANAGERS = frozenset({
    "npm", "pnpm", "yarn", "pip", "pip3", "pipx", "uv", "poetry", "cargo", "go", "gem", "composer", "apt",
    "apt-get", "aptitude", "brew", "dnf", "yum", "apk", "zypper", "conda", "mamba",
})  # fmt: skip
# after these words of a package manager there are names of packages, such as "rm" in "npm install rm"
_BEFORE_PACKAGE_NAMES = frozenset({"install", "add", "i", "get", "search", "info", "show", "test", "t"})
_LATE_VERB_PROGRAMS = frozenset({
    "aws", "gcloud", "gsutil", "bq", "az", "azcopy", "doctl", "heroku", "fly", "flyctl", "vercel",
    "netlify", "hcloud", "linode-cli", "oci", "ibmcloud", "scw", "openstack", "eksctl", "kops", "sam",
    "serverless", "sls", "gh", "glab", "hub", "firebase", "supabase", "wrangler", "railway", "aliyun",
    "eb", "cf", "s3cmd", "s5cmd", "mc", "vault", "consul", "nomad", "etcdctl", "ceph", "rados", "gluster",
    "influx", "nats", "rabbitmqctl", "rabbitmqadmin", "virsh", "vagrant", "lxc", "incus", "qm", "pct",
    "velero", "samba-tool", "ipa", "nodetool", "argocd", "flux", "istioctl", "minikube", "kind", "k3d",
    "rosa", "jenkins-cli", "snyk", "auth0", "stripe",
})  # fmt: skip
"""Programs whose verb may come late, after the names of services and the values of options.

In them the verbs of `_LOSING_CLOUD_VERBS` lose something, too.
"""
_MAX_VERB_WORDS = 3  # the number of first operands among which a verb is looked for
_MAX_LATE_VERB_WORDS = 8  # the same for a program of `_LATE_VERB_PROGRAMS`
_MIN_OPTION_CHARS = 5  # the shortest abbreviation of a long option that is recognised, with its dashes
_VERBS = (
    r"delete|del|deletes?all|destroy|remove|rm|rmi|rb|rmdirs?|purge|prune|drop(all)?|wipe|erase\w*|publish|unpublish"
    r"|uninstall|unmerge|unregistervm|kill|terminate|revoke|reset|clean|cleanup|exec|flush(all|db)?|rollback|revert"
    r"|down|downgrade|truncate|yank|forget|expunge|expire|evict|deregister|decommission|undefine|obliterate"
    r"|abandon|nuke|gc|zap|deintegrate|clobber|mrproper|(dist|real|maintainer-)clean|(user|group)del|autoremove|autopurge|autoclean|send|strip"
)
# the verbs alone, with an object ("delete-user"), or at the end of a task's name ("db:reset", "cache.flush")
_LOSING_VERBS = re.compile(
    rf"({_VERBS})([-_:].*)?"
    r"|.*[:.-](delete|destroy|drop|purge|del|rollback|revert|undo|down|reset|remove|flush|fresh)([:-]all)?"
    r"|/delete",
    re.IGNORECASE,
)
# further verbs that only lose something in the programs of `_LATE_VERB_PROGRAMS`
_LOSING_CLOUD_VERBS = re.compile(
    r"(detach|disable|disassociate|deactivate|restore|cancel|stop-app|stop_app|force|merge|archive|put-bucket-policy"
    r"|schedule-key-deletion|empty|unset|clear|seal|leave|stop|undeploy|invalidate|rewind|failover|rename"
    r"|transfer|pub|request|gc|scale-down|rotate|reboot|undelete|batch-delete|bulk-delete|force-delete"
    r"|release-[a-z-]+|close-account|change|set-desired-capacity|batch-write|put-lifecycle|deallocate|poweroff"
    r")([-_:].*)?|.*[:-](unset|stop|disable)",
    re.IGNORECASE,
)
# flags that lose something in any program: "--purge", "-delete", "--force-reset=yes"
_LOSING_FLAGS = re.compile(
    r"--?(delete|purge|prune|remove|destroy|wipe|erase|uninstall|drop|reset|nuke|flush|vacuum|truncate|unmerge"
    r"|depclean|shutdown|gc|clobber|full-refresh|force-(delete|reset|yes|remove|destroy)|accept-data-loss|allow-remove-essential"
    r"|allow-downgrades|clear-selections|visibility|overwrite|replace|rotate)([-_=].*)?"
)

_LOSING_WORDS: dict[str, str] = {  # words and flags that lose something, by program
    "apt": "remove purge dist-upgrade full-upgrade",
    "dpkg": "--force-all --force-depends --force-remove-essential --force-overwrite",
    "dnf": "remove erase undo distro-sync swap",
    "zypper": "dup dist-upgrade",
    "snap": "remove revert",
    "pip": "uninstall",
    "npm": "un r unlink uninstall prune deprecate owner access",
    "brew": "cleanup untap unlink",
    "nix": "gc delete",
    "drizzle-kit": "drop --force",
    "atlas": "clean apply",
    "mvn": "deploy release:perform release:prepare",
    "gradle": "publish",
    "gem": "push yank",
    "nuget": "push delete",
    "dotnet": "push",
    "twine": "upload",
    "pg_ctl": "stop kill",
    "pg_ctlcluster": "stop",
    "realm": "leave",
    "ssh-keygen": "-R -f",
    "udisksctl": "power-off unmount",
    "airflow": "clear",
    "rq": "empty",
    "sidekiqctl": "stop",
    "influxd": "restore",
    "az": "Complete",  # of "--mode Complete", which deletes what a template does not name
    "gcloud": "mv",
    "alembic": "downgrade --purge",
    "prisma": "reset --force-reset --accept-data-loss",
    "rails": "db:schema:load db:setup db:migrate:down db:migrate:redo db:truncate_all db:prepare",
    "liquibase": "dropAll drop-all rollback rollback-count rollback-to-date rollbackCount",
    "dbmate": "drop rollback down",
    "goose": "down down-to reset redo",
    "migrate": "down drop force",
    "diesel": "reset revert redo",
    "mysqladmin": "drop shutdown kill flush-hosts flush-logs flush-privileges flush-tables password",
    "etcdctl": "del compact restore",
    "rclone": "sync bisync move moveto delete deletefile purge rmdir rmdirs dedupe cleanup",
    "restic": "forget prune unlock rewrite restore remove repair",
    "borg": "delete prune compact recreate break-lock",
    "duplicity": "remove-older-than remove-all-but-n-full remove-all-inc-of-but-n-full cleanup restore",
    "kopia": "delete expire maintenance",
    "pgbackrest": "expire stanza-delete restore stop",
    "wal-g": "delete",
    "barman": "delete recover",
    "snapper": "delete rollback cleanup undochange",
    "timeshift": "--delete --restore --delete-all",
    "gsutil": "rm rb rsync mv",
    "azcopy": "remove rm sync",
    "aws": "rm rb mv",
    "mc": "rm rb mirror mv",
    "s3cmd": "del rm rb mv expire",
    "s5cmd": "rm rb mv",
    "skopeo": "delete sync",
    "svn": "delete del remove rm revert cleanup propdel",
    "hg": "strip purge revert rollback -C --clean -f --force",
    "supervisorctl": "stop shutdown remove clear",
    "pm2": "delete del kill flush stop",
    "nginx": "-s",
    "apachectl": "stop graceful-stop",
    "7z": "d",
    "ar": "d",
    "docker-compose": "down rm kill stop",
    "vercel": "deploy --prod promote",
    "netlify": "deploy",
    "firebase": "deploy",
    "wrangler": "deploy publish",
    "fly": "deploy",
    "flyctl": "deploy",
    "serverless": "deploy",
    "sls": "deploy",
    "sam": "deploy",
    "gh": "merge archive delete rename logout -X --method -f -F --field --raw-field --input --force --admin",
    "glab": "merge archive",
    "poetry": "remove clear",
    "vboxmanage": "poweroff unregistervm closemedium",
}
_PROGRAMS_WITH_SAME_WORDS = {  # the program of `_LOSING_WORDS` whose words another program shares
    "apt-get": "apt", "aptitude": "apt", "yum": "dnf", "microdnf": "dnf", "pip3": "pip", "pnpm": "npm",
    "yarn": "npm", "rake": "rails", "7za": "7z", "7zz": "7z", "apache2ctl": "apachectl",
}  # fmt: skip
_LOSING_LETTERS = {  # one-letter flags that lose something, alone or joined, by program
    "dpkg": "rP", "rpm": "eFU", "pacman": "RcyU", "emerge": "Cc", "nix-env": "e", "htpasswd": "Dc",
    "zip": "dm", "fdupes": "d", "jdupes": "dlL", "kcat": "P", "kafkacat": "P", "tarsnap": "d",
    "unzip": "o", "grpcurl": "d", "rename": "f", "postqueue": "f", "update-initramfs": "d",
}  # fmt: skip
_LOSING_PAIRS = {  # two words in a row that only lose something together, by program
    "gh": {("workflow", "run"), ("secret", "set"), ("variable", "set"), ("alias", "set")},
    "glab": {("ci", "run"), ("variable", "set"), ("variable", "update")},
    "gcloud": {("app", "deploy"), ("run", "deploy"), ("functions", "deploy")},
    "wrangler": {("d1", "execute"), ("kv", "put"), ("secret", "put")},
}
_SHORT_FLAGS = re.compile(r"-[A-Za-z]+")  # one or several joined: "-v", "-vf"
# a program whose own name says it: "db-reset", "user_delete.sh"; or a variant of mail: "mail.mailutils"
_LOSING_NAME = re.compile(
    r".*[-_.](destroy|remove|delete|del|purge|killall|kill|wipe|uninstall|reset|drop)(\.sh|\.py)?|mail\..*"
)
# words by which HTTPie and its likes send something: a method, or a field ("name=value", "n:=1", "file@path")
_SENDING_WORD = re.compile(r"DELETE|PUT|POST|PATCH|[\w.-]+(:?=|:=|@).*", re.ASCII)
_REMOVED_PACKAGE = re.compile(r"[a-z0-9.+-]+[a-z0-9]-")  # "nano-", by which apt removes a package
_WEB_CLIENTS = frozenset({"http", "https", "xh", "xhs", "httpie"})


def find_loss(program: str, arguments: Sequence[str]) -> str | None:
    """Return why a program with these arguments loses or sends something; None if that is not known.

    The first match gives the reason, in this order:

    1. flags and words that lose something in any program, then the flags and words of this program
    2. the program itself: a web client that sends, a name such as ``db-reset``, ``apt`` and ``package-``
    3. verbs among the first operands
    """
    operands = [word for word in arguments if not word.startswith("-")]
    losing = _find_losing_word(program, arguments)
    if losing:
        return f"“{program} {losing}” can lose something"
    pair = _find_losing_pair(program, operands)
    if pair:
        return f"“{' '.join((program, *pair))}” may not be undone"
    if program in _WEB_CLIENTS and any(map(_SENDING_WORD.fullmatch, arguments)):
        return f"“{program}” sends what it is given"
    if _LOSING_NAME.fullmatch(program):
        return f"“{program}” can lose something"
    if program in ("apt", "apt-get") and any(map(_REMOVED_PACKAGE.fullmatch, operands)):
        return f"“{program}” removes a package whose name ends in “-”"
    verb = _find_losing_verb(program, operands)
    if verb:
        return f"“{program} {verb}” may not be undone"
    return None


def _find_losing_word(program: str, arguments: Sequence[str]) -> str | None:
    """Return the first argument that loses something by itself: a flag of any program, or of this one."""
    for word in arguments:
        if _LOSING_FLAGS.fullmatch(word):
            return word
    letters = _LOSING_LETTERS.get(program, "")
    for word in arguments:
        if _SHORT_FLAGS.match(word) and any(letter in letters for letter in word[1:]):
            return word
    losing_words = _LOSING_WORDS.get(_PROGRAMS_WITH_SAME_WORDS.get(program, program), "").split()
    for word in arguments:
        if _is_listed(word, losing_words):
            return word
    return None


def _is_listed(word: str, listed: Sequence[str]) -> bool:
    """Return whether a word is in a list, or an option of the list with a value, abbreviated or joined.

    With ``--force-all`` and ``-f`` in the list these are ``--force-all=x``, ``--force`` and ``-vf``.
    """
    if word in listed:
        return True
    if word.startswith("--"):
        name = word.partition("=")[0]
        if len(name) < _MIN_OPTION_CHARS:
            return False
        return any(entry.startswith(name) for entry in listed)
    joined_letters = _SHORT_FLAGS.match(word)
    if joined_letters is None:
        return False
    listed_letters = {entry[1] for entry in listed if re.fullmatch("-[A-Za-z]", entry)}
    return any(letter in listed_letters for letter in joined_letters[0])


def _find_losing_pair(program: str, operands: Sequence[str]) -> tuple[str, str] | None:
    for pair in pairwise(operands):
        if pair in _LOSING_PAIRS.get(program, ()):
            return pair
    return None


def _find_losing_verb(program: str, operands: Sequence[str]) -> str | None:
    """Return the first verb among the operands that may not be undone."""
    has_late_verbs = program in _LATE_VERB_PROGRAMS
    max_words = _MAX_LATE_VERB_WORDS if has_late_verbs else _MAX_VERB_WORDS
    for word in _list_verb_candidates(program, operands[:max_words]):
        if _LOSING_VERBS.fullmatch(word) or (has_late_verbs and _LOSING_CLOUD_VERBS.fullmatch(word)):
            return word
    return None


def _list_verb_candidates(program: str, words: Sequence[str]) -> Sequence[str]:
    """Return the words that may be verbs. After ``install`` a package manager has names of packages."""
    if program not in _PACKAGE_MANAGERS:
        return words
    for count, word in enumerate(words, 1):
        if word in _BEFORE_PACKAGE_NAMES:
            return words[:count]
    return words
