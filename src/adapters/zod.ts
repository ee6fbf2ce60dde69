// Shapes of what comes from outside (the package zod). Loaded only where something is checked.
export * as z from 'zod';
