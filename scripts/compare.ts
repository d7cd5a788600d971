// `npm run compare`: the reference agent (Codex, from npm) and `convoke exec`, on the same servers and the same scripted model, one after the other where only
// the loopback interface exists: what the model was shown, the time from the start of the process to the first model request, and the peak memory.
import './assert-node.ts'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Json, responses } from '../packages/testkit/clients/model-wires.ts'
import { CLIENT_PACKAGES, installClient } from '../packages/testkit/clients/packages.ts'
import { type Home, openHome } from '../packages/testkit/clients/run-command.ts'
import { endGroup, endWithUs, exitOnSignals } from '../packages/testkit/src/end-with-us.ts'
import { entryOf } from '../packages/testkit/src/gateway-runner.ts'
import { everythingStdio, filesystemStdio, type Launch, memoryStdio } from '../packages/testkit/src/runners.ts'

const HELP = `npm run compare -- [options]
  --rounds N        rounds for each number of servers (default 3)
  --servers LIST    numbers of servers (default 0,10,50)
  --shown           only what the model was shown of the real servers
`
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    servers: { type: 'string', default: '0,10,50' },
    shown: { type: 'boolean', default: false },
    isolated: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const root = resolve(import.meta.dirname, '..')
const cache = join(root, '.cache/clients')
const PROMPT = 'Say hello.'
const POLL_MS = 10
const RUN_MS_MAX = 120_000

/** What the command lines of servers hold. */
const SERVERS = /raw-stdio|server-(everything|memory|filesystem)/

type Servers = Readonly<Record<string, Launch>>

/** What one run showed. */
interface Run {
  /** From the start of the process to the first byte of the first model request. */
  readonly firstRequestMs: number
  /** Peak of the agent's own processes together, without servers. */
  readonly peakMb: number
  readonly body: Json
}

/** An agent and how it is started in a home of its own. */
interface Agent {
  readonly name: string
  prepare(home: Home, servers: Servers, modelUrl: string): Promise<readonly string[]>
  env(home: Home): Readonly<Record<string, string>>
}

const codex: Agent = {
  name: 'codex 0.171.0',
  async prepare(home, servers, modelUrl) {
    const entries = Object.entries(servers).map(
      ([name, { command, args, env }]) =>
        `[mcp_servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\nenv = { ${Object.entries(
          env ?? {},
        )
          .map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
          .join(', ')} }`,
    )
    const settings = [
      'model = "mock-model"\nmodel_provider = "mock"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"',
      `[model_providers.mock]\nname = "mock"\nbase_url = "${modelUrl}/v1"\nwire_api = "responses"`,
      ...entries,
    ]
    await mkdir(join(home.path, 'codex'))
    await writeFile(join(home.path, 'codex/config.toml'), `${settings.join('\n')}\n`)
    const entry = join(cache, 'codex-0.171.0/node_modules/@openai/codex/bin/codex.js')
    return [entry, 'exec', '--skip-git-repo-check', '--json', PROMPT]
  },
  env: (home) => ({ CODEX_HOME: join(home.path, 'codex') }),
}

const convoke: Agent = {
  name: 'convoke',
  async prepare(home, servers, modelUrl) {
    const config = join(home.path, 'convoke.json')
    await writeFile(
      config,
      JSON.stringify({
        mcpServers: Object.fromEntries(Object.entries(servers).map(([name, launch]) => [name, entryOf(launch)])),
      }),
      { mode: 0o600 },
    )
    const entry = join(root, 'packages/cli/dist/main.js')
    const model = ['--base-url', `${modelUrl}/v1`, '--model', 'mock-model', '--json']
    return [entry, '--config', config, '--data-dir', join(home.path, 'data'), 'exec', ...model, PROMPT]
  },
  env: () => ({ OPENAI_API_KEY: 'x' }),
}

const AGENTS = [codex, convoke] as const

/** Runs an agent until the model has been asked once and the process has ended. */
async function run(agent: Agent, servers: Servers): Promise<Run> {
  await using home = await openHome()
  let first: { atMs: number; body: Json } | undefined
  const model = createServer(async (request, response) => {
    const atMs = performance.now()
    const parts: Buffer[] = []
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
    if (!responses.matches((request.url ?? '').split('?')[0] ?? '')) return void response.writeHead(404).end('{}')
    const body = JSON.parse(Buffer.concat(parts).toString()) as Json
    first ??= { atMs, body }
    const { type, text } = responses.write({ say: 'Hello.' }, body, '')
    response.writeHead(200, { 'content-type': type }).end(text)
  })
  await new Promise<void>((settle) => model.listen(0, '127.0.0.1', settle))
  try {
    const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}`
    const args = await agent.prepare(home, servers, url)
    const startedAtMs = performance.now()
    const { peakMb, output } = await watched(args, home, agent.env(home))
    if (first === undefined) throw new Error(`${agent.name} asked no model:\n${output.slice(-2_000)}`)
    return { firstRequestMs: first.atMs - startedAtMs, peakMb, body: first.body }
  } finally {
    const closed = new Promise((settle) => model.close(settle))
    model.closeAllConnections()
    await closed
  }
}

async function watched(
  args: readonly string[],
  home: Home,
  env: Readonly<Record<string, string>>,
): Promise<{ peakMb: number; output: string }> {
  const child = spawn(process.execPath, args, {
    cwd: home.work,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
      HOME: home.path,
      TMPDIR: home.path,
      LANG: 'C.UTF-8',
      ...env,
    },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part: Buffer) => {
      output = (output + part.toString()).slice(-100_000)
    })
  const end = (): void => endGroup(child.pid)
  const release = endWithUs(end)
  const timer = setTimeout(end, RUN_MS_MAX)
  const peaks = new Map<number, number>()
  let isRunning = true
  const ended = new Promise<void>((settle) => {
    child.once('close', () => {
      isRunning = false
      settle()
    })
    child.once('error', (error) => {
      output += String(error)
      isRunning = false
      settle()
    })
  })
  while (isRunning) {
    notePeaks(child, peaks)
    await Promise.race([ended, pause(POLL_MS)])
  }
  clearTimeout(timer)
  end()
  release()
  return { peakMb: [...peaks.values()].reduce((sum, kb) => sum + kb, 0) / 1024, output }
}

/** The high-water mark of each process of the agent: itself, and what runs its binary, but no server. */
function notePeaks({ pid }: ChildProcess, peaks: Map<number, number>): void {
  const waiting = pid === undefined ? [] : [pid]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    try {
      const line = readFileSync(`/proc/${next}/cmdline`, 'utf8')
      // A child is a copy of its parent until it becomes a server.
      if (next !== pid && SERVERS.test(line)) {
        peaks.delete(next)
        continue
      }
      const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${next}/status`, 'utf8'))?.[1]
      peaks.set(next, Math.max(peaks.get(next) ?? 0, Number(peak ?? 0)))
      for (const task of readdirSync(`/proc/${next}/task`))
        waiting.push(
          ...readFileSync(`/proc/${next}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
        )
    } catch {
      // ended meanwhile
    }
  }
}

/** `count` small servers of ten tools each. */
function smallServers(count: number): Servers {
  const program = join(root, 'bench/servers/raw-stdio.mjs')
  const servers: Record<string, Launch> = {}
  for (let index = 0; index < count; index++) {
    const name = `s${index}`
    servers[name] = { kind: 'stdio', command: process.execPath, args: [program, '--name', name, '--tools', '10'] }
  }
  return servers
}

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0
const by = (count: number): string => `${count} server${count === 1 ? '' : 's'}`

async function measure(): Promise<void> {
  const rounds = Number(options.rounds)
  process.stdout.write('| | agent | first model request (ms) | peak memory (MB) |\n|---|---|---|---|\n')
  for (const count of options.servers.split(',').map(Number)) {
    const runs = new Map<Agent, Run[]>(AGENTS.map((agent) => [agent, []]))
    for (let round = 0; round < rounds; round++)
      for (const agent of AGENTS) runs.get(agent)?.push(await run(agent, smallServers(count)))
    for (const [{ name }, all] of runs) {
      const ms = Math.round(median(all.map(({ firstRequestMs }) => firstRequestMs)))
      const mb = Math.round(median(all.map(({ peakMb }) => peakMb)))
      process.stdout.write(`| ${by(count)} | ${name} | ${ms} | ${mb} |\n`)
    }
  }
}

interface Shown {
  readonly name: string
  readonly description: string
  readonly schema: Json
}

/** The tools of servers as a model saw them, by namespace and name with hyphens as underscores: the reference turns the one into the other. */
function shownBy({ tools }: Json): Map<string, Shown> {
  const shown = new Map<string, Shown>()
  for (const tool of (tools ?? []) as Json[])
    if (tool['type'] === 'namespace')
      for (const inner of (tool['tools'] ?? []) as Json[])
        shown.set(`${tool['name']} ${inner['name']}`.replaceAll('-', '_'), {
          name: `${tool['name']} ${inner['name']}`,
          description: String(inner['description'] ?? ''),
          schema: (inner['parameters'] ?? {}) as Json,
        })
  return shown
}

/** Every difference between what the two showed of real servers, a line each. */
async function compareShown(): Promise<void> {
  await using home = await openHome()
  const servers = {
    everything: everythingStdio(),
    memory: memoryStdio(join(home.path, 'memory.json')),
    files: filesystemStdio(home.work),
  }
  const [theirs, ours] = [await run(codex, servers), await run(convoke, servers)].map(({ body }) => shownBy(body))
  if (theirs === undefined || ours === undefined) throw new Error('nothing was shown')
  process.stdout.write(`\nshown: ${theirs.size} tools by the reference, ${ours.size} by convoke\n`)
  for (const name of [...new Set([...theirs.keys(), ...ours.keys()])].sort()) {
    const difference = differenceOf(theirs.get(name), ours.get(name))
    if (difference !== '') process.stdout.write(`${name}: ${difference}\n`)
  }
}

function differenceOf(theirs: Shown | undefined, ours: Shown | undefined): string {
  if (theirs === undefined) return 'only by convoke'
  if (ours === undefined) return 'only by the reference'
  return [
    ...(theirs.name === ours.name ? [] : [`name ${theirs.name} → ${ours.name}`]),
    ...(theirs.description === ours.description ? [] : ['description']),
    ...differingKeys(theirs.schema, ours.schema).map((path) => `schema ${path}`),
  ].join('; ')
}

/** Pointers to what differs, at most eight. */
function differingKeys(one: unknown, other: unknown, path = ''): string[] {
  if (JSON.stringify(one) === JSON.stringify(other)) return []
  const isObject = (value: unknown): value is Json =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject(one) || !isObject(other)) return [path === '' ? '/' : path]
  const keys = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...keys].flatMap((key) => differingKeys(one[key], other[key], `${path}/${key}`)).slice(0, 8)
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

async function main(): Promise<void> {
  if (options.help) return void process.stdout.write(HELP)
  if (!options.isolated) {
    const reference = CLIENT_PACKAGES.find(({ name }) => name === 'codex')
    if (reference !== undefined) await installClient(reference, cache)
    const [command, ...before] = LOOPBACK_ONLY
    if (spawnSync(command, [...before, 'true']).status === 0) {
      const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1), '--isolated']
      process.exitCode = spawnSync(command, [...before, ...self], { stdio: 'inherit' }).status ?? 1
      return
    }
    process.stdout.write('compare: the network is not shut off here\n')
  }
  if (!options.shown) await measure()
  await compareShown()
}

exitOnSignals()
await main()
