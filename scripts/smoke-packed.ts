// What `npm install @convoke/cli @convoke/host` gives a stranger works on every supported Node line: packed, installed in a clean folder, run.
import './assert-node.ts'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { arch, platform, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { report } from './result.ts'

const root = resolve(import.meta.dirname, '..')
const NODES = ['22.23.5', '26.12.1']
const STEP_TIMEOUT_MS = 120_000

interface Ran {
  status: number | null
  stdout: string
  stderr: string
}

function run(command: string, args: readonly string[], cwd: string): Ran {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    timeout: STEP_TIMEOUT_MS,
    env: {
      ...process.env,
      XDG_CONFIG_HOME: cwd,
      XDG_STATE_HOME: join(cwd, 'state'),
      XDG_CACHE_HOME: join(cwd, 'cache'),
    },
  })
  return { status, stdout, stderr: error === undefined ? stderr : `${stderr}\n${error.message}` }
}

function must(ran: Ran, what: string): Ran {
  if (ran.status !== 0) throw new Error(`${what} ended with ${ran.status}\n${ran.stdout}${ran.stderr}`)
  return ran
}

async function nodeBinary(version: string): Promise<string> {
  const name = `node-linux-${arch() === 'arm64' ? 'arm64' : 'x64'}`
  const home = join(root, '.cache', 'nodes', version)
  const binary = join(home, 'node_modules', name, 'bin', 'node')
  if (existsSync(binary)) return binary
  await mkdir(home, { recursive: true })
  await writeFile(join(home, 'package.json'), '{"private":true}')
  must(
    run('npm', ['install', '--silent', '--no-audit', '--no-fund', `${name}@${version}`], home),
    `npm install ${name}@${version}`,
  )
  return binary
}

async function packAll(into: string): Promise<string[]> {
  const tarballs: string[] = []
  for (const name of await readdir(join(root, 'packages'))) {
    const directory = join(root, 'packages', name)
    const manifest = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as { private?: boolean }
    if (manifest.private === true) continue
    const packed = must(
      run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', into], directory),
      `npm pack ${name}`,
    )
    tarballs.push(join(into, packed.stdout.trim().split('\n').at(-1) ?? ''))
  }
  return tarballs
}

const LIBRARY = `import { createHost, loadConfig } from '@convoke/host'
const { definitions } = await loadConfig({ files: [{ path: 'convoke.json', layer: 'flag' }] })
const host = await createHost({ definitions, stateDirectory: 'state', cacheDirectory: 'cache' })
await host.whenSettled()
const binding = await host.bind()
const tool = binding.tool('memory__read_graph')
const outcome = await binding.call(tool, {})
await binding[Symbol.asyncDispose]()
await host.close()
console.log(outcome.kind)
`

async function smoke(version: string, project: string): Promise<string> {
  const node = await nodeBinary(version)
  const command = join(project, 'node_modules', '@convoke', 'cli', 'bin', 'convoke.js')
  const convoke = (...args: string[]): Ran => must(run(node, [command, ...args], project), `convoke ${args.join(' ')}`)
  convoke('--version')
  const listed = JSON.parse(convoke('tools', '--json', '--config', 'convoke.json').stdout) as { tools: unknown[] }
  const called = JSON.parse(convoke('call', 'memory/read_graph', '--json', '--config', 'convoke.json').stdout) as {
    outcome: string
  }
  if (listed.tools.length === 0 || called.outcome !== 'ok')
    throw new Error(`${listed.tools.length} tools, outcome ${called.outcome}`)
  const library = must(run(node, ['library.mjs'], project), 'the library').stdout.trim()
  if (library !== 'ok') throw new Error(`the library's call ended "${library}"`)
  return `${listed.tools.length} tools, one call by the command, one by the library`
}

if (platform() !== 'linux')
  throw new Error('the smoke test takes its Node binaries from packages that exist for Linux only')
const project = await mkdtemp(join(tmpdir(), 'convoke-packed-'))
let passed = 0
let failed = 0
try {
  const tarballs = await packAll(project)
  await writeFile(join(project, 'package.json'), '{"private":true,"type":"module"}')
  const wanted = [...tarballs, '@modelcontextprotocol/server-memory@2026.8.31']
  must(
    run('npm', ['install', '--silent', '--no-audit', '--no-fund', ...wanted], project),
    'npm install of the packed packages',
  )
  await writeFile(join(project, 'library.mjs'), LIBRARY)
  const memory = join(project, 'node_modules/@modelcontextprotocol/server-memory/dist/index.js')
  const server = { command: process.execPath, args: [memory], env: { MEMORY_FILE_PATH: join(project, 'memory.json') } }
  await writeFile(join(project, 'convoke.json'), JSON.stringify({ mcpServers: { memory: server } }))
  for (const version of NODES) {
    try {
      process.stdout.write(`packed: Node ${version}: ok, ${await smoke(version, project)}\n`)
      passed++
    } catch (error) {
      process.stdout.write(`packed: Node ${version}: FAILED, ${(error as Error).message}\n`)
      failed++
    }
  }
} finally {
  await rm(project, { recursive: true, force: true })
}
await report(passed, failed)
