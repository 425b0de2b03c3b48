/** Loaded into a child with `--import`: ends it when its parent is gone, however the parent ended. */

process.once('disconnect', () => process.exit(0))
// The channel is for this alone and must not keep a child alive that is done.
process.channel?.unref()
