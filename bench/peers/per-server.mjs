// A host made of one client a server, for peers that have no such thing themselves. `make(spec)` gives {list, call, close}.

/** Connects to all at once. `marks.readyMs[name]` says when a server's tools were in. */
export async function openPerServer(servers, marks, make) {
  const clients = new Map()
  const startedAtMs = performance.now()
  let first = 0
  marks.readyMs = {}
  marks.failed = {}
  await Promise.all(
    Object.entries(servers).map(async ([name, spec]) => {
      try {
        const client = await make(spec)
        const count = await client.list()
        first += count
        clients.set(name, client)
        marks.readyMs[name] = performance.now() - startedAtMs
      } catch (error) {
        marks.failed[name] = String(error)
      }
    }),
  )
  let isFirst = true
  return {
    /** The first listing was made while connecting, as a good host does; later ones ask again. */
    async listAll() {
      if (isFirst) {
        isFirst = false
        return first
      }
      const counts = await Promise.all([...clients.values()].map((client) => client.list()))
      return counts.reduce((sum, count) => sum + count, 0)
    },
    call: (server, tool, args) => clients.get(server).call(tool, args),
    close: () => Promise.all([...clients.values()].map((client) => client.close())),
  }
}
