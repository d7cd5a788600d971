// `npm run clients`: real clients list and call tools through the gateway. They are installed on demand (pinned, into .cache/clients) and run where only the
// loopback interface exists, if the machine allows that.
import './assert-node.ts'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { CLIENTS, type ClientWorld, faultOf } from '../packages/testkit/clients/clients.ts'
import { CLIENT_PACKAGES, installClient } from '../packages/testkit/clients/packages.ts'
import { endWithUs, exitOnSignals } from '../packages/testkit/src/end-with-us.ts'
import { entryOf, startGateway } from '../packages/testkit/src/gateway-runner.ts'
import {
  everythingStdio,
  type RunningServer,
  scriptedStdio,
  sdk1Stdio,
  sdk2Stdio,
  startSdk2Http,
} from '../packages/testkit/src/runners.ts'
import { report } from './result.ts'

const HELP = `npm run clients -- [options]
  --only REGEX              clients whose name matches
  --endpoint gateway|fixture  whom they meet (default: gateway; the fixture alone shows that the clients work)
  --url URL --echo NAME     … or a server that runs already, and the name of its echo tool
  --no-isolation            with the network of this machine
`
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    endpoint: { type: 'string', default: 'gateway' },
    url: { type: 'string' },
    echo: { type: 'string', default: 'echo' },
    'no-isolation': { type: 'boolean', default: false },
    isolated: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const cache = resolve(import.meta.dirname, '../.cache/clients')
const wanted = CLIENTS.filter(({ name }) => options.only === undefined || new RegExp(options.only).test(name))
const READY_TIMEOUT_MS = 30_000
const POLL_MS = 100
/** Servers of both SDKs and both eras. */
const BEHIND_THE_GATEWAY = {
  everything: entryOf(everythingStdio()),
  scripted: entryOf(scriptedStdio()),
  sdk1: entryOf(sdk1Stdio()),
  sdk2: entryOf(sdk2Stdio({ era: 'modern' })),
}
const LOOPBACK_ONLY = [
  'unshare',
  ...(process.getuid?.() === 0 ? [] : ['--map-root-user']),
  '--net',
  'sh',
  '-c',
  'ip link set lo up && exec "$@"',
  'sh',
] as const

/** Installs what is missing; says who cannot run instead of failing all. */
async function install(): Promise<Map<string, string>> {
  const folders = new Map<string, string>()
  for (const client of CLIENT_PACKAGES) {
    if (!wanted.some(({ installed }) => installed === client.name)) continue
    try {
      folders.set(client.name, await installClient(client, cache))
    } catch (error) {
      process.stderr.write(`${String(error)}\n`)
    }
  }
  return folders
}

function canIsolate(): boolean {
  if (options['no-isolation'] || options.url !== undefined || process.platform !== 'linux') return false
  const [command, ...args] = LOOPBACK_ONLY
  return spawnSync(command, [...args, 'true']).status === 0
}

/** Runs this script again where nothing but loopback exists. */
function runIsolated(): Promise<number> {
  const [command, ...before] = LOOPBACK_ONLY
  const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1), '--isolated']
  return new Promise((settle) => {
    const child = spawn(command, [...before, ...self], { stdio: 'inherit' })
    const release = endWithUs(() => child.kill('SIGTERM'))
    child.once('error', () => settle(1))
    child.once('close', (code) => {
      release()
      settle(code ?? 1)
    })
  })
}

/** The endpoint, with the names that its echo tool has there. */
async function openEndpoint(): Promise<{ server?: RunningServer; url: string; echo: ClientWorld['echo'] }> {
  if (options.url !== undefined) return { url: options.url, echo: { tool: options.echo, argument: 'text' } }
  if (options.endpoint === 'fixture') {
    const server = await startSdk2Http()
    return { server, url: server.url, echo: { tool: 'echo', argument: 'text' } }
  }
  const server = await startGateway({ servers: BEHIND_THE_GATEWAY })
  return { server, url: server.url, echo: { tool: 'everything__echo', argument: 'message' } }
}

/** The names that everybody should see, asked with the plain SDK client as soon as each server behind the endpoint has some. */
async function expectedNames(world: ClientWorld): Promise<readonly string[]> {
  const [first] = CLIENTS
  if (first === undefined) throw new Error('There are no clients')
  const servers = options.endpoint === 'gateway' && options.url === undefined ? Object.keys(BEHIND_THE_GATEWAY) : []
  const deadlineAtMs = performance.now() + READY_TIMEOUT_MS
  for (;;) {
    const toolNames = await first.run(world, 'warm-up').then(
      (outcome) => outcome.toolNames,
      (error: unknown) => error,
    )
    const isReady =
      Array.isArray(toolNames) && servers.every((name) => toolNames.some((tool) => tool.startsWith(`${name}__`)))
    if (isReady) return toolNames
    if (performance.now() > deadlineAtMs) throw new Error(`The endpoint is not ready: ${String(toolNames)}`)
    await pause(POLL_MS)
  }
}

/** The clients that an earlier run, or the part outside, has installed. */
function installedFolders(): Map<string, string> {
  const folders = CLIENT_PACKAGES.map(({ name, version }): [string, string] => [
    name,
    resolve(cache, `${name}-${version}`),
  ])
  return new Map(folders.filter(([, folder]) => existsSync(resolve(folder, '.installed'))))
}

async function runAll(): Promise<void> {
  const folders = installedFolders()
  const { server, url, echo } = await openEndpoint()
  let passed = 0
  try {
    const world: ClientWorld = { url, folders, echo }
    const expected = await expectedNames(world)
    for (const { name, installed, run } of wanted) {
      const label = [name, CLIENT_PACKAGES.find((one) => one.name === installed)?.version].filter(Boolean).join(' ')
      const text = `hello from ${name}`
      const startedAtMs = performance.now()
      try {
        const fault = faultOf(await run(world, text), expected, text)
        if (fault !== undefined) throw new Error(fault)
        const seconds = Math.round((performance.now() - startedAtMs) / 1000)
        process.stdout.write(`ok ${label}: ${expected.length} tools seen, echo answered "${text}" (${seconds} s)\n`)
        passed++
      } catch (error) {
        process.stdout.write(`FAILED ${label}: ${String(error)}\n`)
      }
    }
  } finally {
    await server?.[Symbol.asyncDispose]()
  }
  process.stdout.write(`clients: ${passed} of ${wanted.length} passed\n`)
  await report(passed, wanted.length - passed)
}

async function main(): Promise<void> {
  if (options.isolated) return runAll()
  await install()
  if (canIsolate()) {
    process.exitCode = await runIsolated()
    return
  }
  process.stdout.write('clients: the network is not shut off here\n')
  await runAll()
}

exitOnSignals()
try {
  if (options.help) process.stdout.write(HELP)
  else await main()
} catch (error) {
  process.stdout.write(`FAILED ${String(error)}\nclients: 0 of ${wanted.length} passed\n`)
  await report(0, wanted.length)
}
