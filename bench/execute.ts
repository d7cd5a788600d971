// Runs one measurement in a process of its own and reads what it printed. Nothing of it is left running.
import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'
import type { Workload } from './plan.ts'

/** What one measurement gave: figures by name, or why there are none. */
export interface Sample {
  readonly peer: string
  readonly round: number
  readonly figures: Readonly<Record<string, number>>
  readonly error?: string
}

/** Where the commands find what they need. */
export interface Setup {
  readonly root: string
  /** A folder for configuration and state, removed at the end. */
  readonly folder: string
  /** A configuration with one server. */
  readonly config: string
}

const MEASUREMENT_TIMEOUT_MS = 120_000
const OUTPUT_CHARS_MAX = 20_000

interface Ended {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
}

/** Runs a command in a process group of its own, and ends the group with it. */
function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  return new Promise((settle) => {
    const child = spawn(command, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (part: Buffer) => {
        output[name] = (output[name] + part.toString()).slice(-OUTPUT_CHARS_MAX)
      })
    }
    const timer = setTimeout(() => endGroup(child), MEASUREMENT_TIMEOUT_MS)
    child.once('error', (error) => {
      output.stderr += String(error)
    })
    // A server that was left running would hold the pipes open.
    child.once('exit', () => endGroup(child))
    child.once('close', (code) => {
      clearTimeout(timer)
      settle({ ...output, code })
    })
  })
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has gone.
  }
}

/** Measures one peer once. */
export async function execute(workload: Workload, peer: string, round: number, setup: Setup): Promise<Sample> {
  const measured =
    workload.kind === 'command'
      ? await measureCommand(workload.work, peer, setup)
      : await measureInProcess(workload, peer, setup)
  return { peer, round, ...measured }
}

type Measured = Pick<Sample, 'figures' | 'error'>

async function measureInProcess(workload: Workload, peer: string, { root, folder }: Setup): Promise<Measured> {
  const task = {
    workload: workload.work,
    config: workload.config,
    ...(workload.kind === 'gateway' ? { argv: gatewayArgv(peer, root) } : { peer }),
  }
  const flags = workload.work === 'idle' ? ['--expose-gc'] : []
  const env = { ...process.env, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder, XDG_CACHE_HOME: folder }
  const { stdout, stderr, code } = await run(
    process.execPath,
    [...flags, resolve(root, 'bench/measure.mjs'), JSON.stringify(task)],
    env,
  )
  const line = /^RESULT (.*)$/m.exec(stdout)?.[1]
  if (line === undefined) return { figures: {}, error: `ended with ${code}: ${stderr.slice(-600)}` }
  const { error, ...figures } = JSON.parse(line) as Record<string, number> & { error?: string }
  return error === undefined ? { figures } : { figures, error }
}

function gatewayArgv(peer: string, root: string): string[] {
  if (peer === 'floor') return [resolve(root, 'bench/floor/raw-gateway.mjs'), 'PORT', 'CONFIG']
  if (peer === 'sdk1-gateway') return [resolve(root, 'bench/peers/sdk1-gateway.mjs'), 'PORT', 'CONFIG']
  const serve = ['serve', '--config', 'CONFIG', '--http', '127.0.0.1:PORT', '--data-dir', 'FOLDER']
  return [resolve(root, 'packages/cli/bin/convoke.js'), ...serve]
}

/** User and system time of the command and of all that it waited for, as bash counts them. */
async function measureCommand(work: string, peer: string, setup: Setup): Promise<Measured> {
  const argv = commandArgv(work, peer, setup)
  const env = {
    ...process.env,
    XDG_CONFIG_HOME: setup.folder,
    XDG_STATE_HOME: setup.folder,
    XDG_CACHE_HOME: setup.folder,
  }
  const script = 'TIMEFORMAT="TIMES %R %U %S"; time "$@" </dev/null'
  const { stderr, code } = await run('bash', ['-c', script, 'bash', process.execPath, ...argv], env)
  const [, wall, user, system] = /TIMES ([\d.]+) ([\d.]+) ([\d.]+)\s*$/.exec(stderr) ?? []
  if (code !== 0 || wall === undefined) return { figures: {}, error: `ended with ${code}: ${stderr.slice(-600)}` }
  return { figures: { wallMs: Number(wall) * 1000, cpuMs: Math.round((Number(user) + Number(system)) * 1000) } }
}

function commandArgv(work: string, peer: string, { root, folder, config }: Setup): string[] {
  if (peer === 'node -e 0') return ['-e', '0']
  if (peer !== 'convoke') {
    const file = resolve(root, peer === 'raw' ? 'bench/floor/raw-cli.mjs' : 'bench/peers/sdk1-cli.mjs')
    return work === 'tools' ? [file, config, 'list'] : [file, config, 'call', 's0', 'echo', '{"text":"hi"}']
  }
  const file = resolve(root, 'packages/cli/bin/convoke.js')
  if (work === 'version') return [file, '--version']
  const given = ['--config', config, '--data-dir', folder, '--json']
  return work === 'tools' ? [file, 'tools', ...given] : [file, 'call', 's0/echo', 'text=hi', ...given]
}
