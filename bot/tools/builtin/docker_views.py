"""What Docker's API answers, as the few things that matter to a reader."""

from typing import Any

_ID = 12  # characters of an id, as Docker shows it


def readable(log: bytes) -> str:
    return log.decode(errors="backslashreplace").replace("\0", "\\x00")


def listed(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": found["Id"][:_ID],
        "name": (found.get("Names") or [""])[0].lstrip("/"),
        "image": found.get("Image", ""),
        "state": found.get("State", ""),
        "status": found.get("Status", ""),
    }


def told(found: dict[str, Any]) -> dict[str, Any]:
    """What matters of an inspection. Environment values are secrets more often than not."""
    state, config, host = found["State"], found.get("Config") or {}, found.get("HostConfig") or {}
    return {
        "id": found["Id"][:_ID],
        "name": found.get("Name", "").lstrip("/"),
        "image": config.get("Image", ""),
        "state": state.get("Status", "unknown"),
        "exit_code": state.get("ExitCode"),
        "health": (state.get("Health") or {}).get("Status"),
        "created_at": found.get("Created", ""),
        "started_at": state.get("StartedAt", ""),
        "command": [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])],
        "environment": [each.partition("=")[0] for each in config.get("Env") or []],
        "labels": config.get("Labels") or {},
        "restart_policy": (host.get("RestartPolicy") or {}).get("Name", ""),
        "ports": sorted((found.get("NetworkSettings") or {}).get("Ports") or {}),
        "mounts": [
            f"{each.get('Source', '')}:{each.get('Destination', '')}" for each in found.get("Mounts", [])
        ],
        "restarts": found.get("RestartCount", 0),
    }
