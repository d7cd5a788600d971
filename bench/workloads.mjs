// What is measured of a library: each function opens servers through a peer, works, and fills `out`.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { cpuUs, quantile, round, rssMb } from './facts.mjs'
import { makeServers, stdioSpec } from './specs.mjs'

const SETTLE_MS = 100
/** Garbage collections before memory is read. */
const COLLECTIONS = 5

/** W1: connect to `servers` and list everything; counts how often a server was started. */
async function startup(peer, config, out) {
  const folder = mkdtempSync(join(tmpdir(), 'convoke-bench-'))
  const log = join(folder, 'starts')
  writeFileSync(log, '')
  try {
    const { servers } = await makeServers(config.servers, { flags: { tools: config.tools }, env: { START_LOG: log } })
    const cpu = cpuUs()
    const startedAtMs = performance.now()
    const host = await peer.open(servers, {})
    out.tools = await host.listAll()
    out.wallMs = round(performance.now() - startedAtMs)
    out.cpuMs = round((cpuUs() - cpu) / 1000)
    out.rssMb = round(rssMb())
    await pause(SETTLE_MS)
    out.launches = readFileSync(log, 'utf8').split('\n').filter(Boolean).length
    await host.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** W1: one server is `slowMs` late and one exits at once; when were the tools of the healthy ones in? */
async function mixed(peer, config, out) {
  const { servers } = await makeServers(config.servers, { flags: { tools: config.tools } })
  servers.s3 = stdioSpec('s3', { tools: config.tools, 'init-delay': config.slowMs })
  servers.s6 = stdioSpec('s6', { fail: 'exit' })
  const marks = {}
  const host = await peer.open(servers, marks)
  out.tools = await host.listAll()
  const healthy = Object.entries(marks.readyMs).filter(([name]) => name !== 's3' && name !== 's6')
  out.healthy = healthy.length
  out.healthyMs = round(Math.max(...healthy.map(([, ms]) => ms)))
  await host.close()
}

/** W2: one call after the other. */
async function latency(peer, config, out) {
  const flags = { tools: 10, ...peer.flags }
  const { servers, stop } = await makeServers(1, { transport: config.transport, flags })
  const host = await peer.open(servers, {})
  await host.listAll()
  for (let index = 0; index < config.warm; index++) {
    if ((await host.call('s0', 'echo', { text: `warm ${index}` })) !== `warm ${index}`) throw new Error('A wrong echo')
  }
  const times = new Float64Array(config.calls)
  const cpu = cpuUs()
  for (let index = 0; index < config.calls; index++) {
    const startedAtMs = performance.now()
    await host.call('s0', 'echo', { text: 'hello' })
    times[index] = performance.now() - startedAtMs
  }
  out.cpuUs = round((cpuUs() - cpu) / config.calls)
  out.p50us = round(quantile(times, 0.5) * 1000)
  out.p99us = round(quantile(times, 0.99) * 1000)
  await host.close()
  stop()
}

/** W3: `callers` at once, a fixed number of calls after a fixed warm-up: a time window would measure cold code on a starved machine. */
async function burst(peer, config, out) {
  const { servers, stop } = await makeServers(1, { transport: config.transport, flags: { tools: 10 } })
  const host = await peer.open(servers, {})
  await host.listAll()
  const run = (calls) => {
    let left = calls
    const caller = async () => {
      while (left-- > 0) await host.call('s0', 'echo', { text: 'hello' })
    }
    return Promise.all(Array.from({ length: config.callers }, caller))
  }
  await run(config.warm)
  const cpu = cpuUs()
  const startedAtMs = performance.now()
  await run(config.calls)
  out.perSecond = round(config.calls / ((performance.now() - startedAtMs) / 1000))
  out.cpuUs = round((cpuUs() - cpu) / config.calls)
  out.rssMb = round(rssMb())
  await host.close()
  stop()
}

/** W4: list everything cold, then again. */
async function catalog(peer, config, out) {
  const flags = { tools: config.tools, ...(config.outputSchema ? { 'output-schema': true } : {}) }
  const { servers } = await makeServers(config.servers, { flags })
  const cpu = cpuUs()
  const host = await peer.open(servers, {})
  out.tools = await host.listAll()
  out.coldCpuMs = round((cpuUs() - cpu) / 1000)
  out.rssMb = round(rssMb())
  const cpuAgain = cpuUs()
  for (let index = 0; index < config.again; index++) await host.listAll()
  out.againCpuMs = round((cpuUs() - cpuAgain) / 1000 / config.again)
  await host.close()
}

/** W5: large results. */
async function big(peer, config, out) {
  const { servers } = await makeServers(1, { flags: { tools: 10 } })
  const host = await peer.open(servers, {})
  await host.listAll()
  const call = async () => {
    const text = await host.call('s0', 'big', { bytes: config.bytes })
    if (text.length !== config.bytes) throw new Error(`${text.length} of ${config.bytes} bytes came`)
  }
  for (let index = 0; index < config.warm; index++) await call()
  const times = []
  const cpu = cpuUs()
  for (let index = 0; index < config.calls; index++) {
    const startedAtMs = performance.now()
    await call()
    times.push(performance.now() - startedAtMs)
  }
  out.cpuMs = round((cpuUs() - cpu) / 1000 / config.calls)
  out.p50ms = round(quantile(times, 0.5))
  await host.close()
}

/**
 * W8: what one more idle connection costs. As many come before it: they load what is loaded lazily, and after them V8 has compiled what it will. Behind one
 * connection only, the code that the others make hot would be counted as theirs (four times the truth).
 */
async function idle(peer, config, out) {
  const { servers } = await makeServers(config.servers, { flags: { tools: 5 } })
  const first = await peer.open((await makeServers(config.servers, { flags: { tools: 5 } })).servers, {})
  await first.listAll()
  await collect()
  const rss = rssMb()
  const { heapUsed } = process.memoryUsage()
  const host = await peer.open(servers, {})
  out.tools = await host.listAll()
  await collect()
  out.rssKb = round(((rssMb() - rss) * 1024) / config.servers)
  out.heapKb = round((process.memoryUsage().heapUsed - heapUsed) / 1024 / config.servers)
  await host.close()
  await first.close()
}

/** W10: what the first binding of a fresh process costs when an earlier one has listed the servers. */
async function known(_peer, config, out) {
  await inFolder((folder) => {
    knownHost('prime', folder, config)
    Object.assign(out, knownHost('measure', folder, config))
  })
}

/** W11: a refresh that changes nothing, and a change of every filter. */
async function refresh(_peer, config, out) {
  await inFolder((folder) => Object.assign(out, knownHost('refresh', folder, config)))
}

/** W13: steps of a thread between which nothing has changed, beside servers that sleep and a provider that is slow at the start of each turn. */
async function steps(_peer, config, out) {
  await inFolder((folder) => {
    knownHost('prime', folder, config)
    Object.assign(out, knownHost('steps', folder, config))
  })
}

async function inFolder(use) {
  const folder = mkdtempSync(join(tmpdir(), 'convoke-bench-'))
  try {
    await use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function knownHost(mode, folder, { servers, tools }) {
  const program = new URL('known.mjs', import.meta.url).pathname
  const args = [program, mode, folder, String(servers), String(tools)]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr.slice(-600))
  return stdout === '' ? {} : JSON.parse(stdout)
}

async function collect() {
  for (let index = 0; index < COLLECTIONS; index++) {
    globalThis.gc?.()
    await pause(SETTLE_MS)
  }
}

export const workloads = { startup, mixed, latency, burst, catalog, big, idle, known, refresh, steps }
