// A program of its own for the keyring of the system: a call of it can hang for ever inside of native code, and only the end of a process ends that.
// It reads requests from its input, a line each, and ends with it.
import type * as Keyring from '@napi-rs/keyring'
import { type KeyringItems, readParts, removeParts, writeParts } from './keyring-parts.ts'
import {
  classifyKeyringFailure,
  type KeyringAnswer,
  type KeyringOutcome,
  type KeyringRequest,
  readWritten,
} from './keyring-protocol.ts'

/** Without it the keyring of the kernel is taken where there is no other, and that forgets. */
const PINNED = { linux: { store: 'secret-service' } } as const satisfies Keyring.EntryOptions
/** An account that is never written: asking for it shows whether the pinned store is there at all. */
const NOBODY = '.'

let keyring: Promise<typeof Keyring> | undefined

function itemsOf({ AsyncEntry, findCredentialsAsync }: typeof Keyring, service: string): KeyringItems {
  const entry = (account: string): Keyring.AsyncEntry => new AsyncEntry(service, account, PINNED)
  return {
    get: async (account) => (await entry(account).getPassword()) ?? undefined,
    set: (account, text) => entry(account).setPassword(text),
    remove: async (account) => void (await entry(account).deleteCredential()),
    accounts: async () => (await findCredentialsAsync(service)).map(({ account }) => account),
  }
}

async function list({ AsyncEntry, findCredentialsAsync }: typeof Keyring, service: string): Promise<KeyringOutcome> {
  // The search itself cannot be pinned.
  await new AsyncEntry(service, NOBODY, PINNED).getPassword()
  const found = await findCredentialsAsync(service)
  const items = found.map(({ account, password }) => {
    const written = readWritten(password)
    return { account, bytes: Buffer.byteLength(written?.value ?? password), writtenAtMs: written?.writtenAtMs ?? 0 }
  })
  return { kind: 'listed', items }
}

async function carryOut({ service, order }: KeyringRequest): Promise<KeyringOutcome> {
  const module = await (keyring ??= import('@napi-rs/keyring'))
  const items = itemsOf(module, service)
  switch (order.kind) {
    case 'get':
      return readParts(items, order.account)
    case 'set':
      await writeParts(items, order.account, { text: order.text, partChars: order.partChars })
      return { kind: 'done' }
    case 'remove':
      await removeParts(items, order.account, { partChars: order.partChars })
      return { kind: 'done' }
    case 'list':
      return list(module, service)
  }
}

async function answer(line: string): Promise<void> {
  const request = JSON.parse(line) as KeyringRequest
  let outcome: KeyringOutcome
  try {
    outcome = await carryOut(request)
  } catch (error) {
    outcome = { kind: 'failed', ...classifyKeyringFailure(error instanceof Error ? error.message : String(error)) }
  }
  process.stdout.write(`${JSON.stringify({ id: request.id, outcome } satisfies KeyringAnswer)}\n`)
}

let rest = ''
let working: Promise<void> = Promise.resolve()
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop() ?? ''
  // One after the other, in the order of asking.
  for (const line of lines) working = working.then(() => answer(line))
})
// An ordinary exit waits for native threads, and one of them may hang.
process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL'))
process.stdout.on('error', () => process.kill(process.pid, 'SIGKILL'))
