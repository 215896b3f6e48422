import { fromEnv, serve } from 'portico/node';
import { appOn } from './app.ts';

const { app, gateway } = appOn(fromEnv(process.env));

export default app;

await serve(app, gateway);
