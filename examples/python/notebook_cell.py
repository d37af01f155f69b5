# Cells of a notebook: Jupyter has a running event loop, in which the asyncio client works as it is.
# The synchronous client works there as well; it only blocks the cell.

# %%
import os

from sampi import AsyncClient, TextDelta

pi = AsyncClient(provider=os.environ.get("SAMPI_PROVIDER"), session="memory")

# %%
answer = await pi.run("What is in this folder?")
answer.text

# %%
async for event in pi.stream("And what is the largest file?"):
    match event:
        case TextDelta(text=text):
            print(text, end="")

# %%
stats = await pi.get_session_stats()
stats.tokens.total, stats.cost

# %%
await pi.close()
