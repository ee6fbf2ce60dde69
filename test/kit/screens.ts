// Screens of terminals drawn on this thread.
import type { ScreenJobs } from '../../src/actors/service/shared_terminal.ts';
import { drawScreen, readScreen } from '../../src/adapters/terminal_screen.ts';

export const screensHere: ScreenJobs = {
  draw: async (prepare) => drawScreen(prepare()),
  read: async (prepare) => readScreen(prepare()),
};
