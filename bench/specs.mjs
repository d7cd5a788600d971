// Launch descriptions and running HTTP servers of the workloads.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const serverFile = (name) => fileURLToPath(new URL(`servers/${name}`, import.meta.url))
const toArgs = (flags) =>
  Object.entries(flags).flatMap(([name, value]) => (value === true ? [`--${name}`] : [`--${name}`, String(value)]))

/** @param env what the server gets besides the usual */
export function stdioSpec(name, flags = {}, env = {}) {
  return { command: process.execPath, args: [serverFile('raw-stdio.mjs'), ...toArgs({ name, ...flags })], env }
}

/** A server of its own process, and how to end it. */
export async function startHttp(flags = {}) {
  const child = spawn(process.execPath, [serverFile('raw-http.mjs'), ...toArgs(flags)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise((resolve, reject) => {
    child.stdout.on('data', (text) => {
      const ready = /READY (\d+)/.exec(text)
      if (ready !== null) resolve(Number(ready[1]))
    })
    child.once('exit', (code) => reject(new Error(`The HTTP server ended with ${code}`)))
  })
  return { url: `http://127.0.0.1:${port}/mcp`, stop: () => child.kill('SIGTERM') }
}

/** `count` servers named s0, s1, … over one transport; `stop` ends those that run already. */
export async function makeServers(count, { transport = 'stdio', flags = {}, env = {} } = {}) {
  const servers = {}
  const running = []
  for (let index = 0; index < count; index++) {
    const name = `s${index}`
    if (transport === 'stdio') servers[name] = stdioSpec(name, flags, env)
    else {
      const server = await startHttp({ name, ...flags })
      running.push(server)
      servers[name] = { url: server.url }
    }
  }
  return {
    servers,
    stop() {
      for (const { stop } of running) stop()
    },
  }
}
