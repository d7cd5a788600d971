// What is measured of a gateway (W7): the raw client in front of it, workload servers behind it, CPU and memory of the gateway's own process by /proc.
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { cpuUsOf, quantile, round, rssMbOf } from './facts.mjs'
import { RawHttp } from './floor/raw-client.mjs'
import { makeServers } from './specs.mjs'

const READY_MS_MAX = 30_000
const POLL_MS = 20
const CLOSE_MS_MAX = 5_000
const MEGABYTE = 1_048_576

async function freePort() {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Starts a gateway by a command line in which PORT and CONFIG stand for themselves. */
async function start(argv, servers) {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-bench-'))
  const config = join(folder, 'convoke.json')
  const entries = Object.entries(servers).map(([name, { command, args }]) => [name, { command, args }])
  await writeFile(config, JSON.stringify({ mcpServers: Object.fromEntries(entries) }), { mode: 0o600 })
  const port = await freePort()
  const words = argv.map((word) =>
    word.replace('PORT', String(port)).replace('CONFIG', config).replace('FOLDER', folder),
  )
  const child = spawn(process.execPath, words, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, XDG_CONFIG_HOME: folder },
  })
  let stderr = ''
  child.stderr.on('data', (text) => {
    stderr = (stderr + text).slice(-2_000)
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  return {
    pid: child.pid,
    url: `http://127.0.0.1:${port}/mcp`,
    stderr: () => stderr,
    async close() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_MS_MAX)
      await ended
      clearTimeout(timer)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Connects as soon as the gateway answers, and waits until every tool is there. */
async function connect(gateway, toolCount) {
  const deadlineAtMs = performance.now() + READY_MS_MAX
  for (;;) {
    const client = new RawHttp(gateway)
    try {
      await client.connect()
      for (let tools = await client.listTools(); ; tools = await client.listTools()) {
        if (tools.length >= toolCount) return { client, tools }
        if (performance.now() > deadlineAtMs) throw new Error(`Only ${tools.length} tools`)
        await pause(POLL_MS)
      }
    } catch (error) {
      client.close()
      if (performance.now() > deadlineAtMs) throw new Error(`${String(error)}: ${gateway.stderr()}`)
      await pause(POLL_MS)
    }
  }
}

async function measure({ client, tools }, pid, config, out) {
  const named = (suffix) => tools.find(({ name }) => name.endsWith(suffix)).name
  const echo = named('__echo')
  const call = async () => {
    const { content } = await client.callTool(echo, { text: 'hello' })
    if (content[0].text !== 'hello') throw new Error('A wrong echo')
  }
  for (let index = 0; index < config.warm; index++) await call()
  out.rssReadyMb = round(rssMbOf(pid))
  out.p50us = round((await median(config.calls, call)) * 1000)
  out.listMs = round(await median(config.rare, () => client.listTools()))
  out.bigMs = round(await median(config.rare, () => client.callTool(named('__big'), { bytes: MEGABYTE })))
  await together(config, call, config.burstWarm)
  const cpu = cpuUsOf(pid)
  const startedAtMs = performance.now()
  await together(config, call, config.burstCalls)
  out.perSecond = round(config.burstCalls / ((performance.now() - startedAtMs) / 1000))
  out.cpuUs = round((cpuUsOf(pid) - cpu) / config.burstCalls)
  out.rssLoadMb = round(rssMbOf(pid))
}

async function median(count, work) {
  const times = []
  for (let index = 0; index < count; index++) {
    const startedAtMs = performance.now()
    await work()
    times.push(performance.now() - startedAtMs)
  }
  return quantile(times, 0.5)
}

function together({ callers }, call, calls) {
  let left = calls
  const caller = async () => {
    while (left-- > 0) await call()
  }
  return Promise.all(Array.from({ length: callers }, caller))
}

/** @param argv the gateway's command line after `node` */
export async function measureGateway(argv, config, out) {
  const { servers } = await makeServers(config.servers, { flags: { tools: config.tools } })
  const startedAtMs = performance.now()
  const gateway = await start(argv, servers)
  try {
    const connected = await connect(gateway, config.servers * config.tools)
    out.readyMs = round(performance.now() - startedAtMs)
    out.tools = connected.tools.length
    await measure(connected, gateway.pid, config, out)
    connected.client.close()
  } finally {
    await gateway.close()
  }
}
