// `npm run bench`: one interleaved run of everything. The order is shuffled in every round, each measurement is a fresh process, and a ratio compares figures of
// the same round. Fails only on counts (a server started more than once, a measurement of ours that gave nothing), never on times.
import './assert-node.ts'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { execute, type Sample, type Setup } from '../bench/execute.ts'
import { WORKLOADS, type Workload } from '../bench/plan.ts'
import { summarize, toMarkdown, type WorkloadTable } from '../bench/summary.ts'

const HELP = `npm run bench -- [options]
  --rounds N       default 5
  --only REGEX     workloads whose name matches, e.g. --only '^W2'
  --peers A,B      of these peers alone (the floor is always there)
  --json           the tables as JSON on stdout instead of Markdown
  --no-build       measure what was built before
  --out FOLDER     keep the results there (default: bench/results, which is not under version control)
  --list           name the workloads and their peers
`
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string' },
    peers: { type: 'string' },
    json: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
    out: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const root = resolve(import.meta.dirname, '..')
const OURS: ReadonlySet<string> = new Set(['wire', 'wire-undici', 'host', 'host-undici', 'convoke'])

function chosen(): Workload[] {
  const named = WORKLOADS.filter(({ name }) => options.only === undefined || new RegExp(options.only).test(name))
  const wanted = options.peers?.split(',')
  if (wanted === undefined) return named
  return named.map((one) => ({
    ...one,
    peers: one.peers.filter((peer, index) => index === 0 || wanted.includes(peer)),
  }))
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, key: Math.random() }))
    .sort((left, right) => left.key - right.key)
    .map(({ item }) => item)
}

function build(): void {
  const { status } = spawnSync(process.execPath, ['--conditions=@convoke/source', resolve(root, 'scripts/build.ts')], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  })
  if (status !== 0) throw new Error('The build failed')
}

/** The command is measured on a server without start-up time where there is a C compiler, on a Node server elsewhere. */
function commandServer(folder: string): { command: string; args: string[] } {
  const binary = join(folder, 'native-stdio')
  const { status } = spawnSync('cc', ['-O2', '-o', binary, resolve(root, 'bench/servers/native-stdio.c')])
  const args = ['--name', 's0', '--tools', '100']
  if (status === 0 && existsSync(binary)) return { command: binary, args }
  return { command: process.execPath, args: [resolve(root, 'bench/servers/raw-stdio.mjs'), ...args] }
}

async function prepare(): Promise<Setup> {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-bench-'))
  const config = join(folder, 'convoke.json')
  await writeFile(config, JSON.stringify({ mcpServers: { s0: commandServer(folder) } }), { mode: 0o600 })
  return { root, folder, config }
}

async function measureAll(
  workloads: readonly Workload[],
  rounds: number,
  setup: Setup,
): Promise<Map<string, Sample[]>> {
  const samples = new Map(workloads.map(({ name }): [string, Sample[]] => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const workload of shuffled(workloads)) {
      for (const peer of shuffled(workload.peers)) {
        const sample = await execute(workload, peer, round, setup)
        samples.get(workload.name)?.push(sample)
        const fault = sample.error === undefined ? '' : `: ${sample.error.split('\n')[0]}`
        process.stderr.write(`round ${round + 1}/${rounds} ${workload.name}, ${peer}${fault}\n`)
      }
    }
  }
  return samples
}

/** What may not happen, whatever the machine is doing. */
function faultsOf(table: WorkloadTable): string[] {
  return table.rows
    .filter(({ peer }) => OURS.has(peer))
    .flatMap(({ peer, rounds, cells, errors }) => [
      ...(rounds === 0 || errors.length > 0
        ? [`${table.workload}: ${peer} failed in ${errors.length} rounds: ${errors[0]}`]
        : []),
      ...cells
        .filter(({ key, median }) => key === 'launches' && median !== undefined && median !== 10)
        .map(({ median }) => `${table.workload}: ${peer} started ${median} processes for 10 servers`),
    ])
}

async function main(): Promise<void> {
  const workloads = chosen()
  if (options.list) {
    for (const { name, peers } of workloads) process.stdout.write(`${name}: ${peers.join(', ')}\n`)
    return
  }
  if (!options['no-build']) build()
  const setup = await prepare()
  const startedAt = new Date().toISOString()
  const loadBefore = loadavg()[0]
  try {
    const samples = await measureAll(workloads, Number(options.rounds), setup)
    const tables = workloads.map((workload) => summarize(workload, samples.get(workload.name) ?? []))
    const { version } = JSON.parse(await readFile(resolve(root, 'package.json'), 'utf8')) as { version: string }
    const facts = {
      version,
      node: process.version,
      rounds: Number(options.rounds),
      startedAt,
      loadBefore,
      loadAfter: loadavg()[0],
    }
    const json = JSON.stringify({ ...facts, tables, samples: Object.fromEntries(samples) }, null, 2)
    const results = resolve(options.out ?? resolve(root, 'bench/results'))
    await mkdir(results, { recursive: true })
    await writeFile(join(results, `${startedAt.replaceAll(':', '-')}.json`), json)
    process.stdout.write(options.json ? `${JSON.stringify({ ...facts, tables }, null, 2)}\n` : toMarkdown(tables))
    const faults = tables.flatMap(faultsOf)
    for (const fault of faults) process.stderr.write(`${fault}\n`)
    process.exitCode = faults.length === 0 ? 0 : 1
  } finally {
    await rm(setup.folder, { recursive: true, force: true })
  }
}

if (options.help) process.stdout.write(HELP)
else await main()
