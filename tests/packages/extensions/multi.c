/* Multi-phase initialisation: the body is a slot that exec_module runs. */
#include <Python.h>

static int
body(PyObject *module)
{
    return PyModule_AddIntConstant(module, "value", 2);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, body}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "multi", .m_size = 0, .m_slots = slots};

PyMODINIT_FUNC
PyInit_multi(void)
{
    return PyModuleDef_Init(&definition);
}
