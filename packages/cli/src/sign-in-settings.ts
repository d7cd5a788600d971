// Where the sign-ins of this command are kept.
import { dirname, join, resolve } from 'node:path'
import type { SignInSettings, StandardPaths } from '@convoke/host'
import { usageError } from './command-error.ts'
import type { CommandContext } from './context.ts'

/** Where sign-ins may be kept: in the keyring of the system, in encrypted files, or in the keyring if it works. */
export type CredentialsStore = 'auto' | 'keyring' | 'file'

const STORES: readonly string[] = ['auto', 'keyring', 'file'] satisfies CredentialsStore[]
const VARIABLE = 'CONVOKE_CREDENTIALS_STORE'

/** What this command says about its sign-ins. */
export type CommandSignIns = SignInSettings &
  Required<Pick<SignInSettings, 'directory' | 'keyFile'>> & { readonly store: CredentialsStore }

/**
 * The settings for the host of this command.
 * @param given What `--store` says; default: the variable CONVOKE_CREDENTIALS_STORE, else `auto`.
 * @throws {CommandError} exit code 2 for a store that there is not.
 */
export function signInSettings(
  { env, options }: Pick<CommandContext, 'env' | 'options'>,
  { stateDirectory, configFile }: StandardPaths,
  given?: string,
): CommandSignIns {
  // Whoever copies the folder with the data, or shares the one with the configuration, has not copied the key.
  const keys =
    options.dataDir === undefined
      ? join(dirname(dirname(configFile)), 'convoke-keys')
      : join(resolve(options.dataDir), 'keys')
  return {
    store: given === undefined ? storeOf(env) : readStore(given, '--store'),
    directory: join(stateDirectory, 'sign-ins'),
    keyFile: join(keys, 'sign-ins.key'),
    clientName: 'Convoke',
  }
}

function storeOf(env: CommandContext['env']): CredentialsStore {
  const value = env[VARIABLE] ?? ''
  return value === '' ? 'auto' : readStore(value, `The variable ${VARIABLE}`)
}

function readStore(value: string, what: string): CredentialsStore {
  if (isStore(value)) return value
  throw usageError(`${what} takes ${STORES.join(', ')}, not ${JSON.stringify(value)}.`)
}

function isStore(value: string): value is CredentialsStore {
  return STORES.includes(value)
}
