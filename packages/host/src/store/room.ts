// Whether a value still fits, and what has to go for it. Pure.
import type { StoreLimits } from './key-value-store.ts'

/** One value that is kept. */
export interface KeptValue {
  readonly key: string
  readonly bytes: number
  readonly writtenAtMs: number
}

/** What has to be done before a value is written. */
export type RoomPlan = { readonly kind: 'fits'; readonly drop: readonly string[] } | { readonly kind: 'full' }

/** Makes room for one value; what it replaces counts no more. */
export function planRoom(
  kept: readonly KeptValue[],
  wanted: { readonly key: string; readonly bytes: number },
  { keysMax, totalBytesMax, whenFull }: StoreLimits,
): RoomPlan {
  const others = kept.filter(({ key }) => key !== wanted.key)
  let keys = others.length + 1
  let bytes = others.reduce((sum, one) => sum + one.bytes, wanted.bytes)
  if (keysMax < 1 || wanted.bytes > totalBytesMax) return { kind: 'full' }
  const fits = (): boolean => keys <= keysMax && bytes <= totalBytesMax
  if (fits()) return { kind: 'fits', drop: [] }
  if (whenFull === 'refuse') return { kind: 'full' }
  const drop: string[] = []
  for (const oldest of others.toSorted(byAge)) {
    if (fits()) break
    drop.push(oldest.key)
    keys -= 1
    bytes -= oldest.bytes
  }
  return { kind: 'fits', drop }
}

function byAge(one: KeptValue, other: KeptValue): number {
  return one.writtenAtMs - other.writtenAtMs || (one.key < other.key ? -1 : 1)
}
