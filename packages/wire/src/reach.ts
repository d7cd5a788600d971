// Where a host leads now, for whoever has to decide before anything is asked there.
import { addressKind } from './address.ts'
import { nodePlatform, type Platform, type TimerHandle } from './platform.ts'
import { bareHost } from './proxy.ts'

/** `unknown`: nowhere that this machine can tell, as behind a proxy that looks names up itself. */
export type Reach = 'public' | 'loopback' | 'private' | 'unknown'

const LOOKUP_TIMEOUT_MS = 5_000

/**
 * Where a host name or address literal leads. Of several addresses the most private one counts. What it leads to later may be something else: the door
 * looks again when it connects.
 * @param host As `URL.hostname` writes it, or without brackets.
 * @returns `unknown` also after 5 s without an answer. Never rejects.
 */
export async function reachOf(host: string, platform: Platform = nodePlatform): Promise<Reach> {
  const name = bareHost(host)
  if (name === 'localhost') return 'loopback'
  const literal = reachOfAddress(name)
  if (literal !== 'unknown') return literal
  const addresses = await lookUp(name, platform)
  const all = addresses.map(reachOfAddress)
  return (['private', 'loopback', 'public'] as const).find((one) => all.includes(one)) ?? 'unknown'
}

function reachOfAddress(address: string): Reach {
  const kind = addressKind(address)
  if (kind === 'other') return 'private'
  return kind === 'not-an-address' ? 'unknown' : kind
}

/** Every address of the name; none when there is no answer. */
async function lookUp(name: string, platform: Platform): Promise<readonly string[]> {
  const { lookup } = await import('node:dns/promises')
  let timer: TimerHandle | undefined
  const late = new Promise<readonly string[]>((resolve) => {
    timer = platform.setTimer(() => resolve([]), LOOKUP_TIMEOUT_MS)
  })
  const found = lookup(name, { all: true }).then(
    (addresses) => addresses.map(({ address }) => address),
    () => [],
  )
  try {
    return await Promise.race([found, late])
  } finally {
    platform.clearTimer(timer)
  }
}
