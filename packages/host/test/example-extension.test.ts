// The example of `examples/`, as somebody would use it.
import { createHost } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { CALL_COUNTS, clockExtension } from '../../../examples/clock-extension/clock-extension.ts'
import { scripted } from './support.ts'
import { stepTool } from './turn-support.ts'

verifies('ext.006', async () => {
  let nowMs = Date.UTC(2026, 0, 1, 11, 59)
  await using host = await createHost({
    definitions: [scripted('one', { tools: 1 })],
    extensions: [clockExtension({ now: () => nowMs })],
  })
  await host.whenSettled()
  const thread = await host.thread({ approve: async () => ({ kind: 'approved' }) })
  const turn = await thread.turn()
  const step = await turn.step()
  expect(step.tools.map(({ name }) => name)).toEqual(['one__echo', 'clock'])
  expect(step.worldState.changed).toEqual([{ id: 'clock/time-of-day', text: 'It is morning in UTC.' }])
  const clock = step.find('clock')
  if (clock === undefined) throw new Error('no clock')
  expect(await step.call(clock, {})).toMatchObject({ kind: 'native', text: '2026-01-01T11:59:00.000Z' })
  await step.call(stepTool(step, 'one/echo'), {})
  await step.call(stepTool(step, 'one/echo'), {})
  expect(thread.store.get(CALL_COUNTS)).toEqual(
    new Map([
      ['clock', 1],
      ['one__echo', 2],
    ]),
  )
  nowMs += 60_000
  expect((await turn.step()).worldState.changed).toEqual([{ id: 'clock/time-of-day', text: 'It is afternoon in UTC.' }])
  // Each thread counts for itself.
  expect((await host.thread()).store.get(CALL_COUNTS)).toBeUndefined()
})
