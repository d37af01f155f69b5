//! Child processes: spawn, kill the whole tree, bounded output.
