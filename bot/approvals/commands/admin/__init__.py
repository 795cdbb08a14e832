"""Subcommands of ``/approvals`` for admins: rules, roles, grants, the audit log, pausing everything.

A rule is about a subject, such as who may decide (``approvers``) or how long a proposal waits (``ttl``). It
has a value, and holds for all calls or for those that its tools, its place and its limits name. Most
subcommands set the rule of one subject, by `RuleSetter`. A grant lets calls like an approved one run without
asking; it ends if a new rule is stricter than the rules under which it was given.

``admin_commands.py`` lists all subcommands in the order of the help. In replies, ``put_names_in`` writes
people and places by name.
"""
