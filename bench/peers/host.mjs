// The whole product as a library: configuration, connections, catalog, names, calls.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHost, loadConfig } from '@convoke/host'

// An `import` of it would be counted as ours.
const { mkdtempSync, rmSync, writeFileSync } = process.getBuiltinModule('node:fs')

/** The definitions of these servers, by the way of a configuration file, as a user has them. */
async function define(servers) {
  const folder = mkdtempSync(join(tmpdir(), 'convoke-bench-'))
  try {
    const path = join(folder, 'convoke.json')
    const entries = Object.entries(servers).map(([name, { url, command, args, env }]) => [
      name,
      url === undefined ? { command, args, env } : { url },
    ])
    writeFileSync(path, JSON.stringify({ mcpServers: Object.fromEntries(entries) }), { mode: 0o600 })
    const { definitions, problems } = await loadConfig({ files: [{ path, layer: 'flag' }] })
    const fault = problems.find(({ severity }) => severity === 'error')
    if (fault !== undefined) throw new Error(fault.message)
    return definitions
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A browser in front of an authorization server that lets everybody in. */
const consent = async (url) => {
  const answer = await fetch(url, { redirect: 'manual' })
  await fetch(answer.headers.get('location')).then((page) => page.text())
}

export const openHost = (http) => async (servers, marks) => {
  const definitions = await define(servers)
  const startedAtMs = performance.now()
  marks.readyMs = {}
  const host = await createHost({ definitions, http, signIns: { store: 'memory' } })
  host.subscribe((event) => {
    if (event.kind === 'server.state-changed' && event.status.state === 'ready') {
      marks.readyMs[event.status.name] ??= performance.now() - startedAtMs
    }
  })
  await host.whenSettled()
  for (const { name, state } of host.statuses)
    if (state === 'needs-auth') await host.signIn(name, { openPage: consent })
  await host.whenSettled()
  let binding = await host.bind()
  const byServer = new Map()
  for (const tool of binding.tools) byServer.set(`${tool.server}/${tool.rawName}`, tool)
  return {
    async listAll() {
      binding = await host.bind()
      return binding.tools.length
    },
    async call(server, tool, args) {
      const outcome = await binding.call(byServer.get(`${server}/${tool}`), args)
      if (outcome.error !== undefined) throw outcome.error
      return outcome.result.content[0].text
    },
    close: () => host.close(),
  }
}

export const open = openHost('node')
