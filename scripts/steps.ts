// Runs steps one after another, each as a process of its own with a time limit, and keeps count.
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const NODE = [process.execPath, '--conditions=@convoke/source'] as const

export interface Step {
  readonly name: string
  readonly command: readonly string[]
  readonly timeoutMs: number
  readonly env?: Readonly<Record<string, string>>
}

export interface Counts {
  passed: number
  failed: number
}

interface StepResult extends Counts {
  /** One text per failure, as the step named it. */
  failures: readonly string[]
}

/** A step that runs one of our scripts on this very Node, from sources. */
export function script(name: string, args: readonly string[] = [], timeoutMs = 120_000): Step {
  return { name, command: [...NODE, `scripts/${name}.ts`, ...args], timeoutMs }
}

function execute(step: Step, resultFile: string): Promise<number> {
  return new Promise((done) => {
    const [command = '', ...args] = step.command
    const child = spawn(command, args, {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...step.env, CONVOKE_RESULT_FILE: resultFile },
      detached: true,
    })
    const end = (): void => {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // the group is gone already
      }
    }
    const timer = setTimeout(() => {
      process.stdout.write(`${step.name}: stopped after ${step.timeoutMs / 1000} s\n`)
      end()
    }, step.timeoutMs)
    child.once('error', () => done(127))
    child.once('close', (code) => {
      clearTimeout(timer)
      end()
      done(code ?? 1)
    })
  })
}

/** A step that counts nothing itself counts as one. */
async function resultOf(resultFile: string, code: number): Promise<StepResult> {
  const failedAnyway = code === 0 ? 0 : 1
  try {
    const result = JSON.parse(await readFile(resultFile, 'utf8')) as Partial<StepResult>
    const { passed = 0, failed = 0, failures = [] } = result
    return { passed, failed: failed === 0 ? failedAnyway : failed, failures }
  } catch {
    return { passed: 1 - failedAnyway, failed: failedAnyway, failures: [] }
  }
}

/** Runs every step, also after one has failed; prints a line for each, and at the end what failed. */
export async function runSteps(steps: readonly Step[]): Promise<Counts> {
  const results = await mkdtemp(join(tmpdir(), 'convoke-results-'))
  const total: Counts = { passed: 0, failed: 0 }
  const lines: string[] = []
  const failures: string[] = []
  try {
    for (const step of steps) {
      const startedAtMs = performance.now()
      process.stdout.write(`\n== ${step.name}\n`)
      const file = join(results, `${step.name}.json`)
      const result = await resultOf(file, await execute(step, file))
      total.passed += result.passed
      total.failed += result.failed
      failures.push(...result.failures.map((failure) => `${step.name}: ${failure}`))
      const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
      lines.push(
        `${result.failed === 0 ? 'ok    ' : 'FAILED'} ${step.name}: ${result.passed} passed, ${result.failed} failed, ${seconds} s`,
      )
    }
  } finally {
    await rm(results, { recursive: true, force: true })
  }
  process.stdout.write(`\n${lines.join('\n')}\n`)
  for (const failure of failures) process.stdout.write(`failed: ${failure}\n`)
  return total
}
