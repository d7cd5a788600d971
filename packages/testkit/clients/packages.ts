// The real clients, pinned, installed on demand into a cache folder that is not under version control.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A client from the npm registry. */
export interface ClientPackage {
  readonly name: 'codex' | 'opencode' | 'gemini' | 'inspector'
  readonly spec: string
  readonly version: string
}

export const CLIENT_PACKAGES: readonly ClientPackage[] = [
  { name: 'codex', spec: '@openai/codex', version: '0.171.0' },
  { name: 'opencode', spec: 'opencode-ai', version: '1.18.33' },
  { name: 'gemini', spec: '@google/gemini-cli', version: '0.61.0' },
  { name: 'inspector', spec: '@modelcontextprotocol/inspector', version: '2.12.0' },
]

const INSTALL_TIMEOUT_MS = 180_000
const OUTPUT_CHARS_MAX = 4_000

/**
 * The folder that holds `node_modules` of one client; installed if it is not there yet, without install scripts.
 * @throws {Error} with npm's last words. Half an installation is not left behind.
 */
export async function installClient({ name, spec, version }: ClientPackage, cache: string): Promise<string> {
  const folder = join(cache, `${name}-${version}`)
  const done = join(folder, '.installed')
  if (existsSync(done)) return folder
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{"private":true}\n')
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', `${spec}@${version}`]
  const { code, output } = await npm(args, folder)
  if (code !== 0) {
    await rm(folder, { recursive: true, force: true })
    throw new Error(`npm could not install ${spec}@${version}: ${output}`)
  }
  await writeFile(done, '')
  return folder
}

function npm(args: readonly string[], cwd: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    // The enclosing `npm run` must not decide where this one installs.
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([key]) => !/^npm_(config_(local_)?prefix|package_|lifecycle_)/i.test(key)),
    )
    const child = spawn('npm', args, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: INSTALL_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
    let output = ''
    const collect = (part: Buffer): void => {
      output = (output + part.toString()).slice(-OUTPUT_CHARS_MAX)
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('error', (error) => {
      output += String(error)
    })
    child.once('close', (code) => resolve({ code, output }))
  })
}
