// The configuration of one run, with its problems told.

import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import {
  type ConfigFile,
  type ConfigProblem,
  closestNames,
  didYouMean,
  type LoadedConfig,
  loadConfig,
  type StandardPaths,
  standardPaths,
} from '@convoke/host'
import { CommandError, usageError } from './command-error.ts'
import type { CommandContext } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { styled } from './terminal.ts'

/** Where this run keeps and finds its files. */
export function pathsOf({ env, options }: CommandContext): StandardPaths {
  return standardPaths({
    env,
    homeDirectory: homedir(),
    platform: process.platform,
    ...(options.dataDir === undefined ? {} : { dataDirectory: resolve(options.dataDir) }),
  })
}

/**
 * The same, where things will be written: the folder of --data-dir is made if need be.
 * @throws {CommandError} exit code 2 when it cannot be; the usual folders are used as far as they can be.
 */
export async function placesOf(context: CommandContext): Promise<StandardPaths> {
  const { dataDir } = context.options
  if (dataDir !== undefined) {
    try {
      await mkdir(dataDir, { recursive: true, mode: 0o700 })
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
      throw usageError(`The folder of --data-dir cannot be used (${code}): ${dataDir}`)
    }
  }
  return pathsOf(context)
}

/** The files of this run, in ascending precedence. */
export function configFiles(context: CommandContext): readonly ConfigFile[] {
  const own: ConfigFile = { path: pathsOf(context).configFile, layer: 'user' }
  const { config } = context.options
  return config === undefined ? [own] : [own, { path: config, layer: 'flag' }]
}

/**
 * Loads the configuration and tells its problems on stderr; with `about`, only those of these servers and of whole files.
 * @throws {CommandError} exit code 4 when the file of --config cannot be used at all.
 */
export async function readConfiguration(context: CommandContext, about?: readonly string[]): Promise<LoadedConfig> {
  const loaded = await loadConfig({ files: configFiles(context), env: context.env })
  const given = loaded.files.find((file) => file.layer === 'flag')
  const fatal = loaded.problems.find(
    (problem) => problem.severity === 'error' && problem.line === 0 && problem.file === given?.path,
  )
  if (fatal !== undefined) throw new CommandError(EXIT.configuration, fatal.code, fatal.message)
  const concerns = (problem: ConfigProblem): boolean =>
    about === undefined || problem.server === undefined || about.includes(problem.server)
  tellProblems(context, loaded.problems.filter(concerns))
  return loaded
}

/** Prints problems on stderr, one line each. */
export function tellProblems({ terminal }: CommandContext, problems: readonly ConfigProblem[]): void {
  for (const { severity, message } of problems) {
    terminal.notice(severity === 'error' ? styled('red', 'error: ') : styled('yellow', 'warning: '), message)
  }
}

/** Is there an error, and not one server that could be used? */
export function isUnusable({ definitions, problems }: LoadedConfig): boolean {
  return (
    problems.some((problem) => problem.severity === 'error') &&
    definitions.every((definition) => definition.problem !== undefined)
  )
}

/** @throws {CommandError} exit code 2 for a name that is not configured, with the near ones. */
export function requireServers(names: readonly string[], { definitions }: Pick<LoadedConfig, 'definitions'>): void {
  const known = definitions.map((definition) => definition.name)
  for (const name of names) {
    if (known.includes(name)) continue
    throw unknownServer(`There is no server ${JSON.stringify(name)}.`, didYouMean(name, known), known)
  }
}

/** The error for a name that is not configured: with the near names, else with where to see them all. */
export function unknownServer(what: string, near: string, known: readonly string[]): CommandError {
  const all = known.length === 0 ? ' No server is configured; see convoke add --help.' : allOf(known)
  return new CommandError(EXIT.usage, 'SERVER_UNKNOWN', what + (near || all))
}

/**
 * Nothing has to be started to know that an address names no server: flat names have no slash.
 * @throws {CommandError} exit code 2, with near addresses.
 */
export function requireAddressed(address: string, names: readonly string[]): void {
  const slash = address.indexOf('/')
  if (slash < 0 || names.some((name) => address.startsWith(`${name}/`))) return
  const near = closestNames(address.slice(0, slash), names, NEAR_MAX).map((name) => name + address.slice(slash))
  const hint = near.length === 0 ? '' : ` Did you mean ${near.map((one) => JSON.stringify(one)).join(' or ')}?`
  throw unknownServer(`There is no server for ${JSON.stringify(address)}.`, hint, names)
}

/** Most near addresses. */
const NEAR_MAX = 3
/** Most names that an error lists. */
const NAMES_MAX = 8

function allOf(known: readonly string[]): string {
  if (known.length > NAMES_MAX) return ' convoke list shows them all.'
  return ` There ${known.length === 1 ? 'is' : 'are'} ${known.map((name) => JSON.stringify(name)).join(', ')}.`
}
