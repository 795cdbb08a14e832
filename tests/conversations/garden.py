"""A team's own tools, by the front door (`NOD_TOOLS`): a garden that answers the same each time."""

from bot import tool


@tool(writes=False, open_world=False, summary="Look at {plant}")
async def plant_look(plant: str) -> dict[str, object]:
    """Tell how a plant does."""
    return {"plant": plant, "height_cm": 20 + len(plant), "thirsty": len(plant) % 2 == 0}


@tool(summary="Water {plant} with {litres} l")
async def plant_water(plant: str, litres: int) -> str:
    """Water a plant.

    Args:
        plant: which one
        litres: how much

    """
    return f"{plant} got {litres} l"


@tool(writes=False, open_world=False, summary="Read the log")
async def garden_log() -> str:
    """Read all that was ever noted: five million characters."""
    return "".join(
        f"{number:07d} It rained, and the roses grew by one millimetre.\n" for number in range(85_000)
    )
