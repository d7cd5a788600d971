// Runs scenarios of the official conformance suite, one process each, and reads its own frozen requirement lists.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { endGroup, endWithUs } from '../src/end-with-us.ts'

/** The revisions that have a frozen list of required scenarios. */
export const REVISIONS = ['2025-11-25', '2026-07-28'] as const
export type Revision = (typeof REVISIONS)[number]

/** One scenario on the wire of one revision. */
export interface ScenarioRun {
  readonly scenario: string
  /** `2025-03-26` has no frozen list. */
  readonly revision: Revision | '2025-03-26'
  /** The suite runs those in no revision unless it is told to. Default false. */
  readonly isExtension?: boolean
}

/** Which side of the protocol is judged. */
export type Leg = 'client' | 'server'

/** How one scenario ended. `output` is what the suite printed. */
export interface ScenarioOutcome {
  readonly scenario: string
  readonly revision: ScenarioRun['revision']
  readonly passed: boolean
  readonly durationMs: number
  readonly output: string
}

/** Who is judged: a server by its address, a client by its command line (without spaces inside a word). */
export type Subject = { readonly url: string } | { readonly command: string }

/** How long the suite waits inside a scenario, and how long we wait for the suite. */
const SCENARIO_TIMEOUT_MS = 60_000
const PROCESS_TIMEOUT_MS = 90_000
const OUTPUT_CHARS_MAX = 200_000

const suiteDirectory = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'))
const suiteFile = join(suiteDirectory, 'dist/index.js')

/** The required scenarios of a revision, from the suite's `requirements/REVISION.yaml` (two plain lists among comments). */
export function requiredScenarios(revision: Revision, leg: Leg): string[] {
  const lines = readFileSync(join(suiteDirectory, 'requirements', `${revision}.yaml`), 'utf8').split('\n')
  const start = lines.indexOf(`${leg}:`) + 1
  const length = lines.slice(start).findIndex((line) => !line.startsWith('  - '))
  return lines.slice(start, start + length).map((line) => line.slice('  - '.length).trim())
}

/** The names of the scenarios for clients that the suite has, of every revision and none. */
export async function clientScenarios(): Promise<string[]> {
  const { output } = await run([suiteFile, 'list', '--client'])
  return output.split('\n').flatMap((line) => /^ {2}- (\S+) \[/.exec(line)?.[1] ?? [])
}

/** Runs one scenario once. Never rejects; nothing of it is left running. */
export async function runScenario(
  { scenario, revision, isExtension = false }: ScenarioRun,
  subject: Subject,
): Promise<ScenarioOutcome> {
  const startedAtMs = performance.now()
  const [leg, who, what]: [Leg, string, string] =
    'url' in subject ? ['server', '--url', subject.url] : ['client', '--command', subject.command]
  const args = [suiteFile, leg, who, what, '--scenario', scenario, '--spec-version', revision]
  const force = isExtension ? ['--force'] : []
  const { code, output } = await run([...args, ...force, '--timeout', String(SCENARIO_TIMEOUT_MS)])
  const durationMs = Math.round(performance.now() - startedAtMs)
  return { scenario, revision, passed: code === 0 && hasChecks(output), durationMs, output }
}

/** A scenario that checked nothing has shown nothing. */
function hasChecks(output: string): boolean {
  return /Passed: [1-9]\d*\/\d+, 0 failed/.test(output)
}

function run(args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      env: { ...process.env, NO_COLOR: '1' },
    })
    let output = ''
    const collect = (part: Buffer): void => {
      if (output.length < OUTPUT_CHARS_MAX) output += part.toString()
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    const end = (): void => endGroup(child.pid)
    const release = endWithUs(end)
    const timer = setTimeout(() => {
      output += `\nstopped after ${PROCESS_TIMEOUT_MS} ms\n`
      end()
    }, PROCESS_TIMEOUT_MS)
    child.once('error', (error) => {
      output += String(error)
    })
    child.once('close', (code) => {
      clearTimeout(timer)
      release()
      end()
      resolve({ code: code ?? 1, output })
    })
  })
}
