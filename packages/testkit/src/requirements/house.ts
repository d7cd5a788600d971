import type { Requirement } from '../requirements.ts'

export const house: readonly Requirement[] = [
  {
    id: 'house.001',
    text: 'A test file that leaves a process, socket, server, timer, watcher or temporary entry behind fails, and the leak is named',
    milestone: 1,
  },
]
